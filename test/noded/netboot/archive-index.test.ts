import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findInArchive, parseArchiveIndex } from '../../../noded/netboot/archive-index.ts';

const isRefused = async (text: string, dataBytes = 1000): Promise<void> => {
  await assert.rejects(parseArchiveIndex(text, dataBytes), { code: 'IMAGE_INVALID' }, text);
};

test('a well-formed index is accepted', async () => {
  const index = await parseArchiveIndex('512 10 a/b\n0 0 a/c\n512 10 link\n0 400 ä\n', 1000);
  assert.deepEqual(index.files.get('a/b'), { offset: 512, sizeBytes: 10 });
  assert.deepEqual(index.files.get('link'), { offset: 512, sizeBytes: 10 });
  assert.equal(index.files.size, 4);
  assert.equal((await parseArchiveIndex('', 0)).files.size, 0);
});

test('an index with wrong offsets, paths, links, order or too many names is refused', async () => {
  await isRefused('0 10 a');
  await isRefused('0 1001 a\n');
  await isRefused('999 2 a\n');
  await isRefused('-1 2 a\n');
  await isRefused('0 1e3 a\n');
  await isRefused('9999999999999999 1 a\n');
  for (const path of [
    '/a',
    'a//b',
    '../a',
    'a/..',
    '.',
    'a\\b',
    'a\u0000',
    'a\ufffd',
    'x'.repeat(1025),
  ])
    await isRefused(`0 1 ${path}\n`);
  // Duplicates, and wrong order.
  await isRefused('0 1 a\n0 1 a\n');
  await isRefused('0 1 b\n0 1 a\n');
  await isRefused('0 10 a\n5 10 b\n');
  await isRefused('0 10 a\n0 9 b\n');
  await isRefused('0 1 a\nlink a\tb\n');
  await isRefused('link b\tx\nlink a\tx\n');
  await isRefused('link a\tx\n0 1 b\n');
  for (const target of ['/etc/passwd', '../x', 'a/../../x', 'x/', 'x\ty', 'x'.repeat(1025)])
    await isRefused(`link a\t${target}\n`);
  const many = Array.from({ length: 100_001 }, (_, at) => `0 0 ${String(at).padStart(7, '0')}\n`);
  await isRefused(many.join(''));
});

test('links lead to files and folders of the archive, and circular links lead nowhere', async () => {
  const links = {
    debian: '',
    'dists/stable': 'dists/bookworm',
    grow: 'grow/grow',
    round1: 'round2',
    round2: 'round1',
    toFolder: 'dists',
    vmlinuz: 'boot/linux',
  };
  const lines = Object.entries(links).map(([path, target]) => `link ${path}\t${target}\n`);
  const text = `0 10 boot/linux\n512 10 dists/bookworm/Release\n${lines.join('')}`;
  await parseArchiveIndex(text, 1000);
  const index = Buffer.from(text);
  const at = (path: string): number | undefined => findInArchive(index, path)?.offset;
  assert.equal(at('vmlinuz'), 0);
  assert.equal(at('debian/debian/vmlinuz'), 0);
  assert.equal(at('dists/stable/Release'), 512);
  assert.equal(at('debian/toFolder/stable/Release'), 512);
  const nothing = [
    'round1',
    'grow/x',
    'dists/stable',
    'debian',
    'boot/linux/x',
    'vmlinuz/x',
    '',
    '/',
  ];
  for (const path of nothing) assert.equal(at(path), undefined, path);
  assert.equal(at(`${'debian/'.repeat(41)}vmlinuz`), undefined);
});

test('links are followed up to a limit of links and folder depth', () => {
  const chainOf = (links: number, depth: number): Buffer => {
    const nth = (at: number): string => `${'d/'.repeat(depth - 1)}${String(at).padStart(2, '0')}`;
    const lines = Array.from({ length: links }, (_, at) => `link ${nth(at)}\t${nth(at + 1)}\n`);
    return Buffer.from(`0 10 ${nth(links)}\n${lines.join('')}`);
  };
  const isFound = (links: number, depth: number): boolean =>
    findInArchive(chainOf(links, depth), `${'d/'.repeat(depth - 1)}00`) !== undefined;
  assert.ok(isFound(40, 3));
  assert.ok(isFound(3, 32));
  assert.ok(!isFound(40, 31), 'some 1,300 folders for one file');
});

test('each name of an index is found, and similar names are not', async () => {
  const paths = ['a', 'a b', 'a/b', 'ab', 'z', 'ä', '\u{1f600}'];
  for (let count = 0; count <= paths.length; count += 1) {
    const files = paths.slice(0, count).map((path, at) => `${at} ${at + 1} ${path}\n`);
    const links = paths.slice(count).map((path) => `link l/${path}\tnone\n`);
    const index = Buffer.from([...files, ...links].join(''));
    for (const [at, path] of paths.entries()) {
      const expected = at < count ? { offset: at, sizeBytes: at + 1 } : undefined;
      assert.deepEqual(findInArchive(index, path), expected, `${count} ${path}`);
      assert.equal(findInArchive(index, `l/${path}`), undefined);
      assert.equal(findInArchive(index, `${path}\n`), undefined);
    }
    for (const path of ['', '0', 'a ', 'a/', 'a/a', 'l', 'zz', '\u{1f601}', ' a', '\n', '\t'])
      assert.equal(findInArchive(index, path), undefined, path);
  }
});

test('parsing the longest index yields to the event loop', async () => {
  const lines = Array.from({ length: 100_000 }, (_, at) => `0 0 ${String(at).padStart(7, '0')}\n`);
  let turns = 0;
  const turn = (): void => void ((turns += 1), (next = setImmediate(turn)));
  let next = setImmediate(turn);
  await parseArchiveIndex(lines.join(''), 0);
  clearImmediate(next);
  assert.ok(turns > 50, `${turns} turns`);
});

test('an index of line ends only is refused in less time than the longest index is parsed', async () => {
  const costOf = async (ask: () => Promise<unknown>): Promise<number> => {
    const before = process.threadCpuUsage();
    await ask();
    const { user, system } = process.threadCpuUsage(before);
    return user + system;
  };
  const names = Array.from({ length: 100_000 }, (_, at) => `0 0 ${String(at).padStart(7, '0')}\n`);
  const [taken, ends] = [names.join(''), Buffer.alloc(64 * 2 ** 20, '\n').toString('latin1')];
  const ordinary = await costOf(() => parseArchiveIndex(taken, 0));
  const hostile = await costOf(() => assert.rejects(parseArchiveIndex(ends, 0)));
  assert.ok(hostile < ordinary, `${hostile} µs, and ${ordinary} µs`);
});
