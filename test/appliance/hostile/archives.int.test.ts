import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import { extractTar } from '../../../appliance/agent/overlay/extract.ts';
import { TAR_OPTIONS } from '../../../appliance/agent/overlay/run-tar.ts';
import { TarGate } from '../../../appliance/agent/overlay/tar-gate.ts';
import { unpackTar } from '../../../appliance/agent/overlay/package.ts';
import { isAppError } from '#shared/errors/app-error.ts';
import { hostileArchives } from './archives.ts';
import { compareArchive, knownRefusals } from './compare-archive.ts';
import { randomArchive } from './random-archive.ts';
import { randomSparseArchive } from './random-sparse.ts';
import { unpackWithTarAlone } from './reference-tar.ts';
import { describeTree } from './tree.ts';

const SPARSE_ARCHIVES = 1000;

let directory = '';
let ours = '';
let theirs = '';

before(() => (directory = mkdtempSync(join(tmpdir(), 'gnt-hostile-'))));
after(() => rmSync(directory, { recursive: true }));
beforeEach(() => {
  [ours, theirs] = ['ours', 'theirs'].map((name) => join(directory, name)) as [string, string];
  for (const path of [ours, theirs]) {
    mkdirSync(path);
    // Where the guest's own links lead is inside its root.
    symlinkSync('/', join(path, 'guest-root'));
  }
});
afterEach(() => {
  for (const path of [ours, theirs]) rmSync(path, { recursive: true });
});

describe('what GNU tar makes of an archive, or a refusal that names the entry', () => {
  for (const { name, bytes, verdict } of hostileArchives)
    test(name, async () => {
      const startedAtMs = Date.now();
      if (verdict !== 'as-tar') {
        await assert.rejects(unpackTar(bytes, ours), (error) => {
          assert.ok(isAppError(error), String(error));
          assert.equal(error.code, verdict.code, error.message);
          assert.match(error.message, verdict.says);
          assert.ok(error.message.length < 1000, `${error.message.length} characters`);
          return true;
        });
      } else {
        await unpackTar(bytes, ours);
        assert.equal(await unpackWithTarAlone(bytes, theirs), null);
        assert.deepEqual(describeTree(ours, startedAtMs), describeTree(theirs, startedAtMs));
      }
      assert.deepEqual(readdirSync(directory).sort(), ['ours', 'theirs']);
      assert.deepEqual(
        readdirSync(ours).filter(
          (entry) => entry.startsWith('.gnt-') && entry !== '.gnt-overlay-entry',
        ),
        [],
      );
    });
});

/** Archives that can follow each other in one: none replaces what another one made. */
const independent =
  /^(pax|header uid|time|two names|GNU|name|default ACL|binary|global|old sparse|checksum)/;
for (const size of [1, 7, 511, 512, 513, 1000])
  test(`an archive in chunks of ${size} bytes is the same archive`, async () => {
    const startedAtMs = Date.now();
    const parts = hostileArchives
      .filter(({ verdict, name }) => verdict === 'as-tar' && independent.test(name))
      .map(({ bytes }) => bytes.subarray(0, -1024));
    const archive = Buffer.concat([...parts, Buffer.alloc(1024)]);
    async function* chunks(): AsyncGenerator<Buffer> {
      for (let at = 0; at < archive.length; at += size) yield archive.subarray(at, at + size);
    }
    await extractTar(chunks(), ours);
    assert.equal(await unpackWithTarAlone(archive, theirs), null);
    assert.deepEqual(describeTree(ours, startedAtMs), describeTree(theirs, startedAtMs));
  });

test('random archives become what GNU tar makes of them, or are refused for a known reason', async () => {
  for (let seed = 1; seed <= 40; seed += 1) {
    const result = await compareArchive(randomArchive(seed), directory);
    assert.notEqual(result.kind, 'different', `seed ${seed}: ${JSON.stringify(result)}`);
    if (result.kind === 'refused' && result.tarSays === null)
      assert.ok(
        knownRefusals.some((known) => known.test(result.why)),
        `seed ${seed}: ${result.why}`,
      );
  }
});

/** The tree is no witness here: with the gate and without, tar gets the same bytes. */
test('tar finds as many entries in an archive of sparse files as were judged', () => {
  let compared = 0;
  for (let seed = 1; seed <= SPARSE_ARCHIVES; seed += 1) {
    const gate = new TarGate();
    let passed: Buffer[];
    try {
      passed = gate.push(randomSparseArchive(seed));
      gate.end();
    } catch (error) {
      assert.ok(isAppError(error), String(error));
      continue;
    }
    const tar = spawnSync('tar', [...TAR_OPTIONS, '--verbose'], {
      cwd: ours,
      input: Buffer.concat(passed),
      encoding: 'utf8',
    });
    // With its first complaint it is ended, and the installation has failed.
    if (tar.stderr !== '') continue;
    compared += 1;
    assert.equal(tar.stdout.split('\n').length - 1, gate.passed.entries, `seed ${seed}`);
  }
  assert.ok(compared > SPARSE_ARCHIVES / 20, `${compared} were taken`);
});
