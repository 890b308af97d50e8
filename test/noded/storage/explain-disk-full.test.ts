import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AppError } from '#shared/errors/app-error.ts';
import { explainDiskFull } from '../../../noded/storage/explain-disk-full.ts';

test('what a guest calls an I/O error is a full host where nothing is free, and nothing else is', async () => {
  const io = new AppError('INTERNAL', 'EIO: i/o error, fsync');
  const explain = (error: unknown, free: number) =>
    explainDiskFull(error, () => Promise.resolve(free), 'try again');
  const full = await explain(io, 0);
  assert.ok(full instanceof AppError);
  assert.deepEqual([full.code, full.cause], ['DISK_FULL', io]);
  assert.match(full.hint ?? '', /try again$/);
  assert.equal(await explain(io, 1 << 30), io);
  const refused = new AppError('IMAGE_INVALID', 'it is no archive');
  assert.equal(await explain(refused, 0), refused);
  const unknown = explainDiskFull(io, () => Promise.reject(new Error('gone')), 'x');
  assert.equal(await unknown, io);
  const own = Object.assign(new Error('write'), { code: 'ENOSPC' });
  assert.equal(((await explain(own, 1 << 30)) as AppError).code, 'DISK_FULL');
});

test('each error of a stage that writes for a guest may stem from a full file system', async () => {
  const stages = ['IMAGE_DUMP', 'SCRIPT_FAILED', 'HOOK_FAILED', 'PACKAGE_INVALID'] as const;
  for (const code of [...stages, 'COMMAND_FAILED'] as const) {
    const found = await explainDiskFull(new AppError(code, ''), () => Promise.resolve(0), 'x');
    assert.equal((found as AppError).code, 'DISK_FULL', code);
  }
});
