import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { MIB } from '#shared/units/bytes.ts';
import { runInOwnKernel } from '../../../lab/own-kernel.ts';

test('thin volumes of LVM are made, kept in snapshots and removed, whenever a daemon ends', async (t) => {
  const file = join(import.meta.dirname, 'thin-in-own-kernel.ts');
  const ended = await runInOwnKernel(file, { diskBytes: 128 * MIB });
  if (ended === null) {
    t.skip('User Mode Linux does not support the registers of this processor');
    return;
  }
  const { status, output } = ended;
  process.stdout.write(`${output}\n`);
  assert.equal(status, 0, output);
});
