import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { copyFile, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { systemClock } from '#shared/clock/clock.ts';
import { downloadLimitsOf } from '#shared/contract/download-limits.ts';
import type { ImageKeys } from '#shared/contract/image-keys.ts';
import { silentLogger } from '#shared/log/log.ts';
import { ImageCache } from '../../../../noded/content/images/image-cache.ts';
import { parseImageKey } from '../../../../noded/content/signatures/parse-image-key.ts';
import { createSignatures } from '../../../../noded/content/signatures/signatures.ts';
import {
  DEFAULT_FIRST_MACHINE_UID,
  planMachineUsers,
} from '../../../../noded/host/machine-users.ts';
import { noSecrets } from '../../../../noded/instances/parameters/job-secrets.ts';
import type { JobContext } from '../../../../noded/jobs/job-handler.ts';
import { StageRecorder } from '../../../../noded/jobs/stage-recorder.ts';
import { fetchImage } from '../../../../noded/provision/install/bring-content.ts';
import { instanceRecord } from '../../support/records.ts';

const SIGNED = join(import.meta.dirname, '../../../../fixtures/signatures');
const { signal } = new AbortController();
const ignore = (): void => undefined;
const context: JobContext = {
  ...{ jobId: 1, signal },
  report: {
    ...{ log: ignore, waits: ignore, stageStarted: ignore, stageFinished: ignore },
    ...{ progress: ignore, output: ignore, scriptOutput: ignore },
  },
};
let dir = '';
let source = '';
before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'gnt-bring-'));
  source = join(dir, 'content');
  for (const name of ['content', 'content.minisig'])
    await copyFile(join(SIGNED, name.replace('content.', 'release.')), join(dir, name));
});
after(() => rm(dir, { recursive: true }));

/** Returns the checksum and the key that were verified for a local image. */
async function bring(osImageChecksum: string | null, keys: ImageKeys = {}): Promise<unknown> {
  const limits = () => Promise.resolve(downloadLimitsOf({}));
  const images = new ImageCache({
    ...{ dir: join(dir, 'cache'), maxBytes: 1e9, limits },
    ...{ logger: silentLogger, clock: systemClock },
  });
  const signatures = createSignatures({
    ...{ loadKeys: () => Promise.resolve(keys), limits, netrcFile: join(dir, 'netrc') },
    gpgv: { users: planMachineUsers(DEFAULT_FIRST_MACHINE_UID), dir: join(dir, 'run') },
  });
  const brought = await fetchImage(
    { images, signatures, openPackage: () => Promise.resolve(undefined) },
    {
      instance: instanceRecord({}, { osImage: source, osImageChecksum }),
      secrets: noSecrets,
    },
    new StageRecorder({ first: 'fetch-image', clock: systemClock, context }),
    context,
  );
  brought?.image.release();
  return { checksum: brought?.checksum, key: brought?.key };
}

test('the checksum and the key of an image are those that were verified', async () => {
  const content = await readFile(source);
  const [sha256, sha512] = ['sha256', 'sha512'].map(
    (name) => `${name}:${createHash(name).update(content).digest('hex')}`,
  );
  const release = parseImageKey('release', await readFile(join(SIGNED, 'release.pub'), 'utf8'));
  assert.ok(release.kind === 'minisign');
  const key = `minisign:${release.publicKey}`;
  assert.deepEqual(await bring(null), { checksum: null, key: null }, 'nothing was verified');
  assert.deepEqual(await bring(sha256 ?? null), { checksum: sha256, key: null });
  assert.deepEqual(await bring(sha512 ?? null), { checksum: sha512, key: null });
  assert.deepEqual(await bring(null, { release }), { checksum: sha256, key });
  assert.deepEqual(await bring(sha512 ?? null, { release }), { checksum: sha256, key });
});
