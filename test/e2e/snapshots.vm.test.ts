import assert from 'node:assert/strict';
import { mkdir, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { MIB } from '#shared/units/bytes.ts';
import { QmpClient } from '../../noded/vmm/qmp-client.ts';
import { createLab, type Lab } from '../../scripts/demo/lab.ts';
import { killNode } from '../lab/kill-node.ts';
import { type OtherDisks, putDisksOn } from './support/disks-on.ts';
import {
  createWritingInstance,
  WRITER,
  WRITER_DISK_BYTES,
  type WritingInstance,
} from './support/writing-instance.ts';
import { isFilledWith } from '../lab/is-filled.ts';

const LIMIT_MS = 60_000;
let lab: Lab;
let btrfs: OtherDisks;
let writer: WritingInstance;
const gnt = (...words: string[]): Promise<string> => writer.gnt(...words);
const info = () => writer.info();
const folder = (): Promise<string> => writer.folder();
const writtenTo = (path: string): Promise<number> => writer.writtenTo(path);
const untilWritten = (beyond: number): Promise<number> => writer.untilWritten(beyond);

before(async () => {
  lab = await createLab('gnt-snap');
  btrfs = await putDisksOn('btrfs', lab);
  writer = createWritingInstance(lab, btrfs.folder);
  await lab.startNode();
});

after(async () => {
  await lab.run('gnt-instance', ['remove', '--force', '--shutdown-timeout=0', WRITER]);
  const status = await lab.stopNode();
  const leftovers = await lab.findLeftovers();
  await lab.dispose();
  await btrfs.release();
  assert.equal(status, 0);
  assert.deepEqual(leftovers, []);
});

test('a snapshot of a guest that writes has all that it wrote before, and nothing else', async () => {
  await writer.start();
  const written = await untilWritten(MIB);
  assert.match(await gnt('snapshot', WRITER, 'one'), /the guest paused for \d+ ms/);
  const [{ uuid } = { uuid: '' }] = (await info()).snapshots;
  const kept = join(await folder(), `snapshot-${uuid}`, 'disk0.raw');
  const end = await writtenTo(kept);
  assert.ok(end >= written && end < WRITER_DISK_BYTES, `${end} of ${written} bytes`);
  assert.ok(isFilledWith(0, (await readFile(kept)).subarray(end)));
  await untilWritten(end);
  assert.deepEqual(
    (await gnt('list-snapshots', '--no-headers', '-o', 'name,running', WRITER)).split(/\s+/),
    ['one', 'Y', ''],
  );
});

test('a guest that a killed daemon left standing goes on with the next one', async () => {
  const path = join(await folder(), 'snapshotting-00000000-0000-4000-8000-000000000000');
  const file = join(await folder(), 'disk0.raw');
  const { uuid } = await info();
  await killNode(lab);
  // The state after a kill between pausing and continuing the guest.
  await mkdir(path);
  const qmp = await QmpClient.connect({
    socketPath: join(lab.paths.vmDir, uuid, 'qmp'),
    onEvent: () => undefined,
    timeoutMs: LIMIT_MS,
  });
  await qmp.execute('stop');
  assert.match(JSON.stringify(await qmp.execute('query-status')), /"paused"/);
  qmp.close();
  const standing = await writtenTo(file);
  await lab.startNode();
  await untilWritten(standing);
  assert.deepEqual(
    (await readdir(await folder())).filter((name) => name.startsWith('snapshotting')),
    [],
  );
});

test('a stopped instance gets its disks back, and a running one does not', async () => {
  const refused = await lab.run('gnt-instance', ['restore-snapshot', '--force', WRITER, 'one']);
  assert.equal(refused.status, 2);
  assert.match(refused.stderr, /error\[INSTANCE_STATE\].*is running/);
  await gnt('shutdown', '--timeout=0', WRITER);
  await gnt('restore-snapshot', '--force', WRITER, 'one');
  const end = await writtenTo(join(await folder(), 'disk0.raw'));
  assert.ok(end > MIB && end < WRITER_DISK_BYTES, String(end));
  await gnt('startup', WRITER);
  await untilWritten(end);
  await gnt('remove-snapshot', '--force', WRITER, 'one');
  assert.deepEqual(
    (await readdir(await folder())).filter((name) => name.startsWith('snap')),
    [],
  );
  const unknown = await lab.run('gnt-instance', ['remove-snapshot', '--force', WRITER, 'one']);
  assert.match(unknown.stderr, /error\[NOT_FOUND\]: '.*' has no snapshot 'one'/);
});
