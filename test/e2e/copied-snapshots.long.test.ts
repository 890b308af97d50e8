import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { MIB } from '#shared/units/bytes.ts';
import { createLab, type Lab } from '../../scripts/demo/lab.ts';
import { type OtherDisks, putDisksOn } from './support/disks-on.ts';
import { endLab } from './support/end-lab.ts';
import { createWritingInstance, WRITER, WRITER_DISK_BYTES } from './support/writing-instance.ts';
import { isFilledWith } from '../lab/is-filled.ts';

let lab: Lab;
let ext4: OtherDisks;

before(async () => {
  lab = await createLab('gnt-copied');
  ext4 = await putDisksOn('ext4', lab);
  await lab.startNode();
});

after(async () => {
  await lab.run('gnt-instance', ['remove', '--force', '--shutdown-timeout=0', WRITER]);
  await endLab(lab);
  await ext4.release();
});

test('a copy of a guest that writes is of one moment, is made when asked for alone, and comes back', async () => {
  const { start, gnt, info, folder, writtenTo, untilWritten } = createWritingInstance(
    lab,
    ext4.folder,
  );
  await start();
  const written = await untilWritten(MIB);
  const refused = await lab.run('gnt-instance', ['snapshot', WRITER, 'one']);
  assert.equal(refused.status, 2);
  assert.match(
    refused.stderr,
    /error\[NOT_SUPPORTED\].*\nhint: Copy them with gnt-instance snapshot --copy/,
  );
  assert.match(await gnt('snapshot', '--copy', WRITER, 'one'), /the guest paused for \d+ ms/);
  const [{ uuid } = { uuid: '' }] = (await info()).snapshots;
  const kept = join(await folder(), `snapshot-${uuid}`, 'disk0.raw');
  const end = await writtenTo(kept);
  assert.ok(end >= written && end < WRITER_DISK_BYTES, `${end} of ${written} bytes`);
  assert.ok(isFilledWith(0, (await readFile(kept)).subarray(end)));
  await untilWritten(end);
  await gnt('shutdown', '--timeout=0', WRITER);
  await gnt('restore-snapshot', '--force', WRITER, 'one');
  assert.equal(await writtenTo(join(await folder(), 'disk0.raw')), end);
  await gnt('remove-snapshot', '--force', WRITER, 'one');
  const left = (await readdir(await folder())).filter((name) => name.startsWith('snap'));
  assert.deepEqual(left, []);
});
