import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import { extractTar } from '../../../appliance/agent/overlay/extract.ts';
import { unpackTar } from '../../../appliance/agent/overlay/package.ts';
import { isAppError } from '#shared/errors/app-error.ts';
import { hostileArchives } from './archives.ts';
import { compareArchive, knownRefusals } from './compare-archive.ts';
import { judgeArchives } from './judge-archives.ts';
import { randomArchive } from './random-archive.ts';
import { randomSparseArchive } from './random-sparse.ts';
import { unpackWithTarAlone } from './reference-tar.ts';
import { END, entry, header } from './tar-bytes.ts';
import { describeTree } from './tree.ts';

let directory = '';
let ours = '';
let theirs = '';

before(() => (directory = mkdtempSync(join(tmpdir(), 'gnt-hostile-'))));
after(() => rmSync(directory, { recursive: true }));
beforeEach(() => {
  [ours, theirs] = ['ours', 'theirs'].map((name) => join(directory, name)) as [string, string];
  for (const path of [ours, theirs]) {
    mkdirSync(path);
    // The guest's own links lead inside its root.
    symlinkSync('/', join(path, 'guest-root'));
  }
});
afterEach(() => {
  for (const path of [ours, theirs]) rmSync(path, { recursive: true });
});

describe('an archive is unpacked as by GNU tar, or refused with its entry', () => {
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

/** Archives that can be concatenated: none replaces entries of another. */
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

test('random archives are unpacked as by GNU tar, or refused for a known reason', async () => {
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

/** Takes a second or two; `fuzz-archives.ts` runs thousands. */
const ARCHIVES_AT_ONCE = 400;
const seeds = Array.from({ length: ARCHIVES_AT_ONCE }, (_, index) => index + 1);

for (const [what, make] of [
  ['random', randomArchive],
  ['random sparse', randomSparseArchive],
] as const)
  test(`tar and the gate agree on ${what} archives`, async () => {
    const judgements = await judgeArchives(seeds.map(make), directory);
    for (const [index, judgement] of judgements.entries())
      assert.notEqual(
        judgement.kind,
        'different',
        `seed ${index + 1}: ${JSON.stringify(judgement)}`,
      );
    const same = judgements.filter(({ kind }) => kind === 'same').length;
    assert.ok(same > ARCHIVES_AT_ONCE / 20, `${same} were taken`);
  });

const file = entry({ name: 'file' }, 'x');
for (const [what, archive, passed, entries, how] of [
  ['lets a pipe through', [header({ name: 'p', type: '6', size: 0 })], null, 1, /^tar finds: p/],
  ['lets a name through that climbs', [entry({ name: 'a/../b' }, 'x')], null, 1, /^tar finds: -/],
  ['takes two entries for one', [file, entry({ name: 'other' }, 'x')], null, 1, /^1 judged/],
  ['loses an entry', [file], [END], 0, /^ours:\n.*tar:\n.*file/s],
] as const)
  test(`a gate that ${what} is found`, async () => {
    const gate = {
      push: (chunk: Buffer) => (passed === null ? [chunk] : [...passed]),
      end: () => undefined,
      passed: { entries, bytes: 0 },
    };
    const [found] = await judgeArchives([Buffer.concat([...archive, END])], directory, () => gate);
    assert.equal(found?.kind, 'different');
    assert.match(found.how, how);
  });
