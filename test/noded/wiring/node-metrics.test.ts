import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import type { InstanceStatus } from '#shared/contract/instance.ts';
import type { JobStatus } from '#shared/contract/job.ts';
import { createMetrics } from '../../../metad/control/metrics.ts';
import { createNodeMetrics } from '../../../noded/wiring/node-metrics.ts';
import { threadMs, threadStretches } from '../../lab/thread-time.ts';

const FEW = ['running', 'running', 'ADMIN_down'] as const;

function createExample(
  activeJobs: () => readonly JobStatus[] = () => [],
  states: readonly InstanceStatus[] = FEW,
) {
  const metrics = createNodeMetrics(1_500);
  metrics.observe({
    activeJobs,
    instanceStates: () => Promise.resolve(states),
    halts: () => ['disk-full'],
    guestsWithoutSecrets: () => 3,
    guestBoots: () => Promise.resolve(['error', 'done', 'done'] as const),
    metadRestarts: () => 2,
    relays: () => [{ relay: 'api', answers: 3, failures: 1, sent: 10, received: 20 }],
    linkPaths: () => ['direct', 'store', 'direct'],
    cacheBytes: () => Promise.resolve(4096),
    places: () =>
      Promise.resolve([
        { place: 'disks', path: '/disks', device: 1, totalBytes: 1000, freeBytes: 70 },
      ]),
    promisedBytes: () => Promise.resolve(3000),
  });
  return metrics;
}

test('jobs are counted while they run, and every state is there before there is a job', async () => {
  let active: readonly JobStatus[] = ['running', 'success'];
  const metrics = createExample(() => active);
  assert.match(await metrics.render(), /^gnt_jobs\{status="running"\} 1$/m);
  active = [];
  const text = await metrics.render();
  for (const status of ['queued', 'waiting', 'running', 'canceling']) {
    assert.match(text, new RegExp(`^gnt_jobs\\{status="${status}"\\} 0$`, 'm'));
  }
  assert.doesNotMatch(text, /gnt_jobs\{status="success"\}/);
});

test('instances are counted in the time that it takes to look at them', async () => {
  const states = Array.from({ length: 200_000 }, (_, index) => FEW[index % 3] ?? 'running');
  const metrics = createExample(undefined, states);
  await metrics.render();
  let ratio = Infinity;
  for (let round = 0; round < 5; round += 1) {
    const ownMs = threadMs(() => Map.groupBy(states, (status) => status));
    const { allMs } = await threadStretches(() => metrics.render());
    ratio = Math.min(ratio, allMs / ownMs);
  }
  assert.ok(ratio < 3, `${ratio} times as long`);
  assert.match(await metrics.render(), /^gnt_instances\{status="ADMIN_down"\} 66666$/m);
});

test('nodes are counted by the way of streams to them', async () => {
  const text = await createExample().render();
  assert.match(text, /^gnt_data_links\{path="direct"\} 2$/m);
  assert.match(text, /^gnt_data_links\{path="store"\} 1$/m);
  assert.match(text, /^gnt_data_links\{path="unused"\} 0$/m);
});

test('guests are counted by the verdict of their boot', async () => {
  const text = await createExample().render();
  assert.match(text, /^gnt_guest_boots\{status="done"\} 2$/m);
  assert.match(text, /^gnt_guest_boots\{status="error"\} 1$/m);
  assert.match(text, /^gnt_guest_boots\{status="running"\} 0$/m);
});

test('what is free where the node writes is told beside what its disks may grow to', async () => {
  const text = await createExample().render();
  assert.match(text, /^gnt_file_system_free_bytes\{place="disks"\} 70$/m);
  assert.match(text, /^gnt_file_system_size_bytes\{place="disks"\} 1000$/m);
  assert.match(text, /^gnt_disks_promised_bytes 3000$/m);
});

test('the dashboard asks for what the daemons export, and for all of it', async () => {
  const text = [await createExample().render(), await createMetrics(() => []).render()].join('\n');
  const types = new Map(
    [...text.matchAll(/^# TYPE (\w+) (\w+)$/gm)].map(([, name = '', type = '']) => [name, type]),
  );
  const file = new URL('../../../fixtures/grafana/gnt.json', import.meta.url);
  const asked = new Set((await readFile(file, 'utf8')).match(/gnt_\w+/g));
  // Queries name a histogram by its buckets.
  const exported = [...types].map(([name, type]) =>
    type === 'histogram' ? `${name}_bucket` : name,
  );
  assert.deepEqual([...asked].toSorted(), exported.toSorted());
});

test('guests that cannot read their secrets are counted', async () => {
  assert.match(await createExample().render(), /^gnt_guests_without_secrets 3$/m);
});
