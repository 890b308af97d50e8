import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { collect } from '#shared/stream/collect.ts';
import { requireDigest } from '../../../../noded/content/downloads/require-digest.ts';

const chunks = ['first ', 'second ', 'last'].map((text) => Buffer.from(text));
const sha256 = createHash('sha256').update(Buffer.concat(chunks)).digest('hex');
const streamOf = (...given: readonly Buffer[]): Readable => Readable.from(given);

test('content with the right digest passes whole', async () => {
  const bytes = await collect(requireDigest(streamOf(...chunks), sha256, 'web.tgz'), 1000);
  assert.equal(bytes.toString(), 'first second last');
});

test('content with another digest is an error before its end, for any chunks', async () => {
  const evil = Buffer.from('evil');
  for (const given of [[...chunks.slice(0, 2), evil], [evil], [], [...chunks, evil]]) {
    const seen: Buffer[] = [];
    const gate = requireDigest(streamOf(...given), sha256, 'web.tgz');
    await assert.rejects(
      async () => {
        for await (const chunk of gate) seen.push(chunk as Buffer); // no encoding is set
      },
      { code: 'PACKAGE_CHECKSUM_MISMATCH', message: /^web\.tgz changed after it was checked/ },
    );
    assert.ok(Buffer.concat(seen).length < Buffer.concat(given).length || given.length === 0);
  }
});

test('an error of the source is passed on, and a destroyed reader closes the source', async () => {
  const failing = new Readable({ read: () => undefined });
  failing.push('first ');
  const gate = requireDigest(failing, sha256, 'web.tgz');
  failing.destroy(new Error('cut'));
  await assert.rejects(collect(gate, 1000), { message: 'cut' });
  const endless = new Readable({ read: () => undefined });
  const left = requireDigest(endless, sha256, 'web.tgz');
  left.destroy();
  await new Promise((resolve) => endless.once('close', resolve));
});
