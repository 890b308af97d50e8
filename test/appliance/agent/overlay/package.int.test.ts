import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
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

test('hears to its end a sender that may say there that it was another package', async () => {
  writeFileSync(join(source, 'file'), 'x');
  // The decompressor needs nothing of what is behind its stream.
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
