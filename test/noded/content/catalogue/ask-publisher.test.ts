import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findPublishedChecksum } from '../../../../noded/content/catalogue/ask-publisher.ts';

const [A, B] = ['a'.repeat(64), 'b'.repeat(64)];
const LONG = 'c'.repeat(128);

test('finds the checksum of a file in the list formats of the distributions', () => {
  assert.equal(findPublishedChecksum(`${B}  other.img\n${A}  x.img\n`, 'x.img'), `sha256:${A}`);
  assert.equal(findPublishedChecksum(`${A} *x.img`, 'x.img'), `sha256:${A}`);
  assert.equal(findPublishedChecksum(`${A.toUpperCase()}  ./x.img`, 'x.img'), `sha256:${A}`);
  const fedora = `-----BEGIN PGP SIGNED MESSAGE-----\n# x.img: 7 bytes\nSHA256 (x.img) = ${A}\n`;
  assert.equal(findPublishedChecksum(fedora, 'x.img'), `sha256:${A}`);
  assert.equal(findPublishedChecksum(`${A}  x.img\r\n${LONG}  x.img`, 'x.img'), `sha512:${LONG}`);
});

test('ignores a checksum of another file or kind, and contradictory checksums', () => {
  for (const list of [
    '',
    `${A}  x.img.old`,
    `${A}  dir/x.img`,
    `${'a'.repeat(96)}  x.img`,
    `SHA384 (x.img) = ${'a'.repeat(96)}`,
    `${A}  x.img\n${B}  x.img`,
  ])
    assert.equal(findPublishedChecksum(list, 'x.img'), undefined, list);
});

test('finding a checksum in a million lines takes less than four times as long as splitting them', () => {
  const list = '\n'.repeat(1024 ** 2);
  const took = (work: () => unknown): number => {
    const before = process.threadCpuUsage();
    work();
    const { user, system } = process.threadCpuUsage(before);
    return (user + system) / 1000;
  };
  const finding = Math.min(
    ...[1, 2, 3].map(() => took(() => findPublishedChecksum(list, 'x.img'))),
  );
  const splitting = Math.min(...[1, 2, 3].map(() => took(() => list.split('\n').length)));
  assert.ok(finding < 4 * splitting, `${finding} ms, and ${splitting} ms to split it`);
});
