import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { systemClock as clock } from '#shared/clock/clock.ts';
import { runLists } from '#shared/contract/lifecycle.ts';
import { metadEvent } from '#shared/contract/metad-control.ts';
import { silentLogger } from '#shared/log/log.ts';
import { createRecordProblems } from '#shared/store/readable-records.ts';
import { createSqliteStore } from '#shared/store/sqlite-store.ts';
import {
  createGuestEvents,
  type GuestEvents,
} from '../../../noded/instances/reports/guest-events.ts';
import { planNewInstance } from '../../../noded/instances/record/plan-record.ts';
import { createInstanceRepository } from '../../../noded/records/instance-repository.ts';
import { ChannelLab } from '../../metad/support/channel-lab.ts';
import { askFromGuest } from '../../metad/support/guest-http.ts';
import { exampleView } from '../../metad/support/view-fixture.ts';
import { createLabLifecycles } from '../../noded/support/lab-lifecycles.ts';
import { createOpcode } from '../../noded/support/opcodes.ts';
import { median, percentile } from './measurement.ts';
import type { Report } from './measurement.ts';

const ROUNDS = 60;
/** Time for the guest's request to arrive. */
const SETTLE_MS = 20;
const POLL_MS = 1;
const SCRIPT = Buffer.from('#!/bin/sh\n').toString('base64');
const LISTS = runLists.parse({ operational: [{ name: 'now', content: SCRIPT }] });

/**
 * Measures two delays: from a guest's `operational` to the record that `list` shows, and from a
 * requested script to the answer for a waiting guest. Uses the node daemon's lifecycles over a
 * store on disk, and a real metad.
 */
export async function measureGuestsWord(report: Report): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const lab = stack.use(await ChannelLab.create());
  const directory = await mkdtemp(join(tmpdir(), 'gnt-bench-'));
  stack.defer(() => rm(directory, { recursive: true }));
  const store = createSqliteStore({ path: join(directory, 'store.sqlite'), clock });
  stack.defer(() => store.close());
  const instances = createInstanceRepository(store, clock, createRecordProblems(silentLogger));
  const created = await instances.create(
    planNewInstance(createOpcode({ communication: true, runLists: LISTS }), {
      ...{ nodeName: 'node1', newUuid: randomUUID, newMac: () => 'aa:00:00:00:00:01' },
    }),
  );
  const { uuid } = created;
  const base = {
    ...exampleView(),
    uuid,
    limits: { requestsPerSecond: 1e9, burst: 1e9, connections: 64 },
  };
  const guest = await lab.addGuest(base.channel);
  const guestEvents = createGuestEvents();
  const kept = { machine: { uuid, startedAtMs: 5 } };
  let revision = 1;
  const lifecycles = createLabLifecycles({
    ...{ instances, guestEvents, clock },
    machines: {
      get: () => kept,
      whenGone: () => new Promise(() => undefined),
      kill: () => Promise.resolve(),
      publish: async () => {
        const lifecycle = await lifecycles.planView(await read(), new Set());
        revision += 1;
        await lab.put({ ...base, revision, ...(lifecycle && { lifecycle }) });
      },
    },
  });
  lifecycles.hear();
  const read = async (): Promise<typeof created> => (await instances.findByUuid(uuid)) ?? created;
  stack.defer(follow(lab.controlSocket, guestEvents));
  const ask = (path: string, body?: string): ReturnType<typeof askFromGuest> =>
    askFromGuest(guest.namespace, `/ganeti/latest/${path}`, {
      ...(body !== undefined && { method: 'POST', body }),
    });

  const listed: number[] = [];
  const reached: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    await lifecycles.begin(await read(), false);
    lifecycles.follow(kept);
    const { run } = lifecycles.current(await read()) ?? {};
    const lifecycle = await lifecycles.planView(await read(), new Set());
    revision += 1;
    await lab.put({ ...base, revision, ...(lifecycle && { lifecycle }) });
    // The first record is written after this time. Without it, the next one of the instance would
    // wait 200 ms.
    await sleep(300);
    const said = { run, boot: randomUUID() };
    await ask('lifecycle/events', JSON.stringify([{ type: 'booting', ...said, number: 1 }]));
    await sleep(300);
    let at = performance.now();
    await ask('lifecycle/events', JSON.stringify([{ type: 'operational', ...said, number: 2 }]));
    while ((await read()).lifecycle?.state !== 'operational') await sleep(POLL_MS);
    listed.push(performance.now() - at);

    const etag = (await ask('lifecycle.json')).headers.etag ?? '';
    const waiting = ask(
      `lifecycle.json?wait_for_change=true&last_etag=${encodeURIComponent(etag)}`,
    );
    await sleep(SETTLE_MS);
    const cancel = new AbortController();
    at = performance.now();
    const running = lifecycles
      .run(await read(), { script: '01-now', env: {} }, cancel.signal)
      .catch(() => undefined);
    await waiting;
    reached.push(performance.now() - at);
    cancel.abort(new Error('measured'));
    await running;
  }
  for (const [name, times] of [
    ['`operational` said to `list` that shows it', listed],
    ['a script wanted to the answer of a guest that waits', reached],
  ] as const) {
    const unit = 'ms';
    report({ name: `${name}, p50`, value: median(times), unit, compared_with: null });
    report({ name: `${name}, p95`, value: percentile(times, 0.95), unit, compared_with: null });
  }
}

/** Forwards metad's events. @returns a function that stops it */
function follow(socketPath: string, guestEvents: GuestEvents): () => void {
  const outgoing = request({ socketPath, path: '/v1/events?after=0' }, (incoming) => {
    const lines = createInterface({ input: incoming });
    lines.on('line', (line) => {
      if (line !== '') guestEvents.dispatch(metadEvent.parse(JSON.parse(line)));
    });
    // readline repeats the stream's error.
    lines.on('error', () => undefined);
  });
  outgoing.on('error', () => undefined);
  outgoing.end();
  return () => void outgoing.destroy();
}
