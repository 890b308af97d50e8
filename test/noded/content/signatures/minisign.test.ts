import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import {
  type MinisignKey,
  parseMinisignKey,
  parseMinisignSignature,
  verifyMinisign,
} from '../../../../noded/content/signatures/minisign.ts';
import { SignatureProblem } from '../../../../noded/content/signatures/signature-problem.ts';

const read = (name: string): string =>
  readFileSync(join(import.meta.dirname, '../../../../fixtures/signatures', name), 'utf8');
const keyOf = (text: string): MinisignKey => {
  const key = parseMinisignKey(text);
  assert.ok(key);
  return key;
};
const keys = new Map([
  ['other', keyOf(read('other.pub'))],
  ['release', keyOf(read('release.pub'))],
]);
const digestOf = (content: string): Buffer => createHash('blake2b512').update(content).digest();
const verify = (signature: string, content = read('content'), named = keys): string =>
  verifyMinisign(parseMinisignSignature(signature), named, digestOf(content))[0];
const isProblem = (pattern: RegExp) => (error: unknown) =>
  error instanceof SignatureProblem && pattern.test(error.message);

test('a signature of the minisign program is valid, and its key is named', () => {
  assert.equal(verify(read('release.minisig')), 'release');
  assert.equal(verify(read('other.minisig')), 'other');
  // The key without its comment, as in an argument.
  assert.deepEqual(parseMinisignKey(read('release.pub').split('\n')[1] ?? ''), keys.get('release'));
});

test('a signature of another content, key or comment is not valid', () => {
  const signature = read('release.minisig');
  assert.throws(() => verify(signature, `${read('content')} `), isProblem(/signs other content/));
  const other = new Map([['other', keyOf(read('other.pub'))]]);
  assert.throws(() => verify(signature, read('content'), other), isProblem(/E35349A4BC6B056B/));
  const retold = signature.replace('release 7', 'release 8');
  assert.throws(() => verify(retold), isProblem(/trusted comment/));
  // A key with the number of the configured key.
  const { publicKey } = keyOf(read('other.pub'));
  const posing = new Map([['release', { ...keyOf(read('release.pub')), publicKey }]]);
  assert.throws(() => verify(signature, read('content'), posing), isProblem(/signs other content/));
});

test('a signature with a changed bit is not valid', () => {
  const lines = read('release.minisig').split('\n');
  for (const line of [1, 3]) {
    const bytes = Buffer.from(lines[line] ?? '', 'base64');
    for (let at = 0; at < bytes.length; at += 1) {
      const changed = Buffer.from(bytes);
      changed[at] = (changed[at] ?? 0) ^ 1;
      const text = lines.with(line, changed.toString('base64')).join('\n');
      assert.throws(() => verify(text), SignatureProblem, `line ${line}, byte ${at}`);
    }
  }
});

test('a malformed or legacy signature is refused', () => {
  const signature = read('release.minisig');
  for (const text of ['', 'a\nb\nc\nd', `${signature}more`, signature.split('\n', 3).join('\n')])
    assert.throws(() => parseMinisignSignature(text), isProblem(/not a minisign signature/));
  assert.throws(() => parseMinisignSignature(read('legacy.minisig')), isProblem(/-SHm/));
  const [top = '', block = '', ...rest] = signature.split('\n');
  const loose = [top, `${block.slice(0, -1)}\t=`, ...rest].join('\n');
  assert.throws(() => parseMinisignSignature(loose), isProblem(/not a minisign signature/));
});

test('a malformed minisign key is not parsed', () => {
  const [comment = '', key = ''] = read('release.pub').split('\n');
  for (const text of [
    '',
    comment,
    `${comment}\n`,
    `x\n${key}`,
    `${comment}\n${key}\n${key}`,
    `${key}A`,
  ])
    assert.equal(parseMinisignKey(text), undefined, text);
  assert.equal(parseMinisignKey(read('release.minisig').split('\n')[1] ?? ''), undefined);
});
