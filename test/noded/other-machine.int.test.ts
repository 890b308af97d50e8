import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

const top = join(import.meta.dirname, '../..');
/** Node is of this machine, and so are its native packages, which are loaded before. */
const ON_ARM64 = 'data:text/javascript,Object.defineProperty(process, "arch", { value: "arm64" });';

function runOnArm64(root: string, ...args: readonly string[]): ReturnType<typeof spawnSync> {
  return spawnSync(
    process.execPath,
    ['--import', 'koffi', '--import', 'netlink', '--import', ON_ARM64, 'noded/main.ts', ...args],
    {
      cwd: top,
      encoding: 'utf8',
      env: { GNT_ROOT: root },
      timeout: 120_000,
    },
  );
}

test('a host that is not x86-64 is refused by name, and nothing is made on it', async () => {
  const root = await mkdtemp(join(tmpdir(), 'gnt-arm64-'));
  try {
    const { status, stderr } = runOnArm64(root, '--node', 'node1');
    assert.match(
      String(stderr),
      /^error\[HOST_PREREQUISITE\]: gnt-noded requires x86-64, this host is arm64\n/,
    );
    assert.notEqual(status, 0);
    assert.deepEqual(await readdir(root), []);
    assert.equal(runOnArm64(root, '--version').status, 0);
  } finally {
    await rm(root, { recursive: true, force: true });
  }
});
