import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterEach, beforeEach, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { examinePackage, overlayPackage } from '../../../../appliance/agent/overlay/package.ts';
import { isAppError } from '#shared/errors/app-error.ts';
import { MIB } from '#shared/units/bytes.ts';

let directory = '';
let source = '';
let root = '';

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'gnt-package-'));
  source = join(directory, 'source');
  root = join(directory, 'root');
  for (const path of [source, root]) mkdirSync(path);
});
afterEach(() => rmSync(directory, { recursive: true }));

function tar(): Buffer {
  return execFileSync('tar', ['-C', source, '-cf', '-', '.']);
}

const isToldOf = (error: unknown): boolean =>
  isAppError(error, 'PACKAGE_DOWNLOAD') && error.message.includes('another one');

test("an error at the end of the sender's stream is reported", async () => {
  writeFileSync(join(source, 'file'), 'x');
  // The decompressor does not read beyond its stream.
  const bytes = Buffer.concat([gzipSync(tar()), Buffer.alloc(4 * MIB)]);
  const say = (): Readable =>
    Readable.from(
      (async function* () {
        for (let at = 0; at < bytes.length; at += 64 * 1024) {
          yield bytes.subarray(at, at + 64 * 1024);
          await nextTurn();
        }
        throw new Error('it was another one');
      })(),
    );
  await assert.rejects(overlayPackage(say(), root), isToldOf);
  await assert.rejects(examinePackage(say()), isToldOf);
});

test('accepts trailing zeros, and refuses a package with other trailing data, truncated or damaged', async () => {
  writeFileSync(join(source, 'file'), randomBytes(300_000));
  const whole = gzipSync(tar());
  const padded = Readable.from([whole, Buffer.alloc(4 * MIB)]);
  assert.equal((await overlayPackage(padded, root)).bytes, 300_000);
  assert.ok(padded.readableEnded);
  const damaged = Buffer.from(whole);
  // Damages the checksum.
  damaged.fill(0, damaged.length - 8, damaged.length - 4);
  const followed = Buffer.concat([whole, Buffer.from('more')]);
  for (const bytes of [
    followed,
    whole.subarray(0, -9),
    damaged,
    Buffer.from('no gzip'),
    Buffer.alloc(0),
  ]) {
    const input = Readable.from([bytes]);
    await assert.rejects(overlayPackage(input, root), (error) =>
      isAppError(error, 'PACKAGE_INVALID'),
    );
    assert.ok(input.destroyed);
  }
  const cut = new Readable({ read: () => undefined });
  cut.push(whole.subarray(0, 100_000));
  setImmediate(() => cut.destroy());
  await assert.rejects(examinePackage(cut), (error) => isAppError(error, 'PACKAGE_DOWNLOAD'));
});
