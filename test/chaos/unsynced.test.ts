import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findUnsynced, type Unsynced } from './unsynced.ts';

const unsynced = (...lines: readonly string[]): Unsynced =>
  findUnsynced(
    lines,
    (path) => path.startsWith('/d/'),
    (path) => path === '/d/old',
  );
const WHOLE = [
  '7 openat(AT_FDCWD</>, "/d/f/half", O_WRONLY|O_CREAT|O_EXCL, 0600) = 5</d/f/half>',
  '7 write(5</d/f/half>, ""..., 10) = 10',
  '7 fsync(5</d/f/half>)          = 0',
  '7 rename("/d/f/half", "/d/f/one") = 0',
  '7 fsync(6</d/f>)               = 0',
];

test('a file that was written, synced, renamed and whose folder was synced is safe', () => {
  assert.deepEqual(unsynced(...WHOLE), { contents: new Map(), names: [] });
});

test('each sync that is left out is missed', () => {
  const noContent = unsynced(...WHOLE.filter((line) => !line.includes('fsync(5')));
  assert.deepEqual([...noContent.contents], [['/d/f/one', 'whole']]);
  const noName = unsynced(...WHOLE.slice(0, -1));
  assert.deepEqual(noName.names, [
    { kind: 'made', path: '/d/f/half' },
    { kind: 'moved', path: '/d/f/one', from: '/d/f/half' },
  ]);
});

test('a sync covers what was written before it began, and none that did not end does', () => {
  const crossing = unsynced(
    '7 fsync(5</d/old> <unfinished ...>',
    '8 pwrite64(5</d/old>, ""..., 4096, 8192) = 4096',
    '7 <... fsync resumed>) = 0',
  );
  assert.deepEqual([...crossing.contents], [['/d/old', [[8192, 4096]]]]);
  const cut = unsynced(
    '8 pwrite64(5</d/old>, ""..., 4096, 0) = 4096',
    '7 fsync(5</d/old> <unfinished ...>',
    '7 +++ killed by SIGKILL +++',
  );
  assert.deepEqual([...cut.contents], [['/d/old', [[0, 4096]]]]);
});

test('what fails, what is elsewhere and what was there before changes no name', () => {
  const { contents, names } = unsynced(
    '7 mkdir("/d/there", 0777) = -1 EEXIST (File exists)',
    '7 write(3</run/x>, ""..., 1) = 1',
    '7 openat(AT_FDCWD</>, "/d/old", O_RDWR|O_CREAT, 0600) = 5</d/old>',
  );
  assert.deepEqual([contents.size, names], [0, []]);
});
