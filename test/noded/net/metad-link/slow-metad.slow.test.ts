import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { test } from 'node:test';
import { systemClock } from '#shared/clock/clock.ts';
import { silentLogger } from '#shared/log/log.ts';
import { createRootPaths } from '#shared/paths/root-paths.ts';
import type { ContentProvider } from '../../../../noded/net/metad-link/content-server.ts';
import { createMetadLink, type MetadLink } from '../../../../noded/net/metad-link/metad-link.ts';

const launcher = {
  command: process.execPath,
  args: ['--disable-warning=ExperimentalWarning', join(import.meta.dirname, 'control-program.ts')],
};
const content: ContentProvider = {
  openRelay: async () => ({ kind: 'refusal', status: 404, reason: 'no relay' }),
  findBootTree: async () => undefined,
  openMirror: async () => undefined,
  openImage: async () => undefined,
  issueToken: async () => ({ kind: 'refused', status: 403, reason: 'no identity' }),
  findService: async () => undefined,
  openPackage: async () => undefined,
};

test('a slow metad is awaited and adopted, and no second metad is started', async (t) => {
  const root = await mkdtemp(join(tmpdir(), 'gnt-link-'));
  const paths = createRootPaths(root);
  execFileSync('ip', ['netns', 'add', paths.networkNamespace]);
  t.after(async () => {
    execFileSync('ip', ['netns', 'delete', paths.networkNamespace]);
    await rm(root, { recursive: true });
  });
  const newLink = (): MetadLink =>
    createMetadLink({ paths, launcher, logger: silentLogger, clock: systemClock });
  const first = newLink();
  await first.start(content);
  const pid = first.pid ?? 0;
  await first.detach();
  // An older release keeps no record.
  await rm(paths.metadRecordFile, { force: true });
  process.kill(pid, 'SIGSTOP');
  const second = newLink();
  const started = second.start(content);
  // Longer than a busy machine was once given before a twin was started.
  await delay(5500);
  const pids = execFileSync('ip', ['netns', 'pids', paths.networkNamespace], { encoding: 'utf8' });
  process.kill(pid, 'SIGCONT');
  await started;
  try {
    assert.equal(pids.trim(), String(pid));
    assert.deepEqual([second.adopted, second.pid], [true, pid]);
  } finally {
    await second.stop();
  }
  assert.equal(second.pid, null);
});
