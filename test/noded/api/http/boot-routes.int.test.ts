import assert from 'node:assert/strict';
import { request } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { guestProgress, type GuestProgress } from '#shared/contract/instance.ts';
import { readLines } from '#shared/text/lines.ts';
import { ask, createApiLab } from '../../support/api-lab.ts';

/** The value in noded/api/http/boot-routes.ts. */
const PAUSE_MS = 20;

async function follow(path: string, name: string): Promise<AsyncGenerator<GuestProgress>> {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    request({ socketPath: path, path: `/v1/instances/${name}/boot` }, resolve)
      .once('error', reject)
      .end();
  });
  assert.equal(response.headers['content-type'], 'application/x-ndjson');
  return (async function* () {
    for await (const line of readLines(response, 65_536))
      yield guestProgress.parse(JSON.parse(line));
  })();
}

const next = async (lines: AsyncGenerator<GuestProgress>): Promise<GuestProgress> =>
  ((await lines.next()).value as GuestProgress | undefined) ?? assert.fail('it ended');

test('what a guest says of its boot is told as it says it, and the end of its machine', async (t) => {
  const { path, start, guestEvents, guestReports, keeper } = await createApiLab(t);
  const { name, uuid } = await start(true);
  guestReports.follow(keeper.get(uuid) ?? assert.fail());
  const lines = await follow(path, name);
  assert.deepEqual(await next(lines), {
    ...{ isRunning: true, readyAtMs: null, boot: null, lifecycle: null },
  });
  const event = { stage: 'modules-final', module: null, result: null, description: '' } as const;
  guestEvents.dispatch({
    ...{ sequence: 1, instance: uuid },
    event: { type: 'boot', event: { ...event, phase: 'start' } },
  });
  assert.equal((await next(lines)).boot?.stage, 'modules-final');
  // The reader gets only as many of ten thousand lines as it reads.
  for (let sequence = 2; sequence < 10_000; sequence++)
    guestEvents.dispatch({
      ...{ sequence, instance: uuid },
      event: {
        type: 'boot-result',
        result: { stage: null, errors: [`${sequence}`], recoverableErrors: [], stages: [] },
      },
    });
  assert.deepEqual((await next(lines)).boot?.errors, ['9999']);
  await keeper.kill(uuid);
  assert.equal((await next(lines)).isRunning, false);
  assert.equal((await lines.next()).done, true);
});

test('a word after a silence is told at once, without the pause between two of many', async (t) => {
  const { path, start, guestEvents, guestReports, keeper } = await createApiLab(t);
  const { name, uuid } = await start(true);
  guestReports.follow(keeper.get(uuid) ?? assert.fail());
  const lines = await follow(path, name);
  await next(lines);
  const tookMs: number[] = [];
  for (let sequence = 1; sequence <= 10; sequence++) {
    await sleep(PAUSE_MS);
    const said = performance.now();
    const result = { stage: null, errors: [`${sequence}`], recoverableErrors: [], stages: [] };
    guestEvents.dispatch({
      ...{ sequence, instance: uuid },
      event: { type: 'boot-result', result },
    });
    await next(lines);
    tookMs.push(performance.now() - said);
  }
  assert.ok(Math.min(...tookMs) < PAUSE_MS, tookMs.join(' '));
});

test('an instance that does not run, or is none, is told at once', async (t) => {
  const { path, start, keeper } = await createApiLab(t);
  const { name, uuid } = await start(true);
  await keeper.kill(uuid);
  const lines = await follow(path, name);
  assert.equal((await next(lines)).isRunning, false);
  assert.equal((await lines.next()).done, true);
  assert.equal((await ask(path, 'GET', '/v1/instances/nobody/boot')).status, 404);
});
