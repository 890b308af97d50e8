import { base256, END, entry, type HeaderFields, gnuLong, header, pax } from './tar-bytes.ts';

/** Returns numbers from a seed (mulberry32): the same archives in every run. */
export function createRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

type Random = () => number;

function pick<T>(random: Random, items: readonly T[]): T {
  return items[Math.floor(random() * items.length)] as T; // never empty
}

const NAMES = ['a', 'b', 'c', 'd', 'way', 'd', '..', '', 'é', Buffer.from([0xff]), 'x'.repeat(90)];
const ODD_NUMBERS = ['0', '5', '512', '4.5', '0x5', '-1', '', ' 7', '99999999999', '1e1', '08'];

function randomName(random: Random): Buffer {
  const parts = Array.from({ length: 1 + Math.floor(random() * 4) }, () =>
    Buffer.from(pick(random, NAMES)),
  );
  // Mostly valid names, so that archives get beyond their first entry.
  const kept =
    random() < 0.02 ? parts : parts.filter((part) => !['', '..'].includes(part.toString()));
  if (kept.length === 0) kept.push(Buffer.from('a'));
  const joined = kept.flatMap((part, index) => (index === 0 ? [part] : [Buffer.from('/'), part]));
  return Buffer.concat([...joined, Buffer.from(random() < 0.03 ? '/' : '')]);
}

function randomPax(random: Random): Buffer {
  const records: [string, string | Buffer][] = [];
  const maybe = (chance: number, key: string, value: () => string | Buffer): void => {
    if (random() < chance) records.push([key, value()]);
  };
  const number = (): string =>
    random() < 0.97 ? pick(random, ['0', '5', '7']) : pick(random, ODD_NUMBERS);
  maybe(0.4, 'path', () => randomName(random));
  maybe(0.2, 'linkpath', () => randomName(random));
  maybe(0.02, 'size', number);
  maybe(0.2, 'uid', number);
  maybe(0.2, 'gid', number);
  maybe(0.3, 'mtime', () => pick(random, ['1.5', '-7.25', '0', '1234567890.123456789']));
  maybe(0.1, 'SCHILY.xattr.user.a', () => Buffer.from([0xff, 0, 0x0a]));
  maybe(0.1, 'SCHILY.acl.access', () => 'user::rw-,user:7:r--,group::r--,mask::r--,other::---');
  maybe(0.01, 'GNU.sparse.map', () => pick(random, ['0,5', '512,5', '5,0', '0,5,1']));
  maybe(0.01, 'GNU.sparse.size', () => pick(random, ['5', '1000', '0']));
  maybe(0.01, 'GNU.sparse.numblocks', () => pick(random, ['1', '2', '0']));
  maybe(0.01, 'GNU.sparse.name', () => randomName(random));
  maybe(0.01, 'GNU.sparse.major', () => pick(random, ['0', '1', '7']));
  maybe(0.01, 'GNU.sparse.minor', () => '0');
  maybe(0.01, 'GNU.sparse.realsize', () => pick(random, ['5', '1000']));
  maybe(0.1, 'VENDOR.x', () => 'y');
  if (records.length === 0) records.push(['comment', 'nothing']);
  return pax(records, random() < 0.02 ? 'g' : 'x');
}

function randomTarget(random: Random): Buffer {
  return Buffer.concat([Buffer.from(random() < 0.3 ? '/' : ''), randomName(random)]);
}

function randomEntry(random: Random): Buffer {
  const content =
    random() < 0.6 ? Buffer.alloc(pick(random, [0, 1, 5, 511, 512, 513, 1500]), 'z') : '';
  const type = pick(random, [
    '0',
    '0',
    '0',
    '0',
    '5',
    '5',
    '2',
    '2',
    '1',
    '1',
    '\0',
    '7',
    'D',
    'S',
  ]);
  const hasContent = '0\x007D'.includes(type) || random() < 0.005;
  const fields: HeaderFields = {
    name: randomName(random),
    type,
    mode: pick(random, [0o644, 0o755, 0o4755, 0, 0o7777]),
    uid: pick(random, [0, 7, 1234, base256(70_000n, 8)]),
    gid: pick(random, [0, 7, 1234]),
    mtime: pick(random, [0, 1_000_000_000, base256(-1000n, 12), base256(2n ** 33n, 12)]),
    link: type === '1' ? pick(random, ['a', 'b', 'd/a', 'c', '']) : randomTarget(random),
    magic: pick(random, ['ustar', 'gnu', 'none'] as const),
    ...(random() < 0.05 && { prefix: 'pre' }),
    ...(random() < 0.01 && { size: pick(random, [5, 512, 0, 4096]) }),
    ...(random() < 0.02 && { checksum: pick(random, ['signed', 'wrong'] as const) }),
  };
  if (type === 'D' || hasContent) return entry(fields, content);
  return header({ size: 0, ...fields });
}

/**
 * Makes one archive: mostly valid, with an odd value in every few entries, and overwritten bytes in
 * some.
 */
export function randomArchive(seed: number): Buffer {
  const random = createRandom(seed);
  const parts: Buffer[] = [];
  for (let count = 1 + Math.floor(random() * 7); count > 0; count -= 1) {
    if (random() < 0.3) parts.push(randomPax(random));
    if (random() < 0.05) parts.push(gnuLong('L', randomName(random)));
    if (random() < 0.05) parts.push(gnuLong('K', randomName(random)));
    parts.push(randomEntry(random));
  }
  if (random() < 0.95) parts.push(END);
  const archive = Buffer.concat(parts);
  if (random() < 0.05) {
    const at = Math.floor(random() * archive.length);
    archive.writeUInt8(Math.floor(random() * 256), at);
  }
  return random() < 0.03 ? archive.subarray(0, Math.floor(random() * archive.length)) : archive;
}
