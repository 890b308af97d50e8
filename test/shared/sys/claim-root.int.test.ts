import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { createRootPaths, type RootPaths } from '#shared/paths/root-paths.ts';
import { claimRoot } from '#shared/sys/claim-root.ts';

let top = '';
before(async () => {
  top = await mkdtemp(join(tmpdir(), 'gnt-claim-'));
});
after(() => rm(top, { recursive: true, force: true }));

test('a root has one daemon at a time, two roots have two', () => {
  const [a, b] = ['a', 'b'].map((name) => createRootPaths(join(top, name)));
  assert.ok(a && b);
  const releaseA = claimRoot(a);
  const releaseB = claimRoot(b);
  assert.throws(() => claimRoot(a), { code: 'CONFLICT' });
  releaseA();
  claimRoot(a)();
  releaseB();
});

test('the claim of a killed daemon is free at once, also while a child of it lives on', async () => {
  const paths = createRootPaths(join(top, 'killed'));
  const daemon = spawn(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', '-e', script(paths)],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  const [said] = (await once(daemon.stdout, 'data')) as [Buffer];
  assert.throws(() => claimRoot(paths), { code: 'CONFLICT' });
  daemon.kill('SIGKILL');
  await once(daemon, 'exit');
  claimRoot(paths)();
  process.kill(Number(said.toString()), 'SIGKILL');
});

test('nobody but root can hold the lock', async () => {
  const paths = createRootPaths(join(top, 'mode'));
  claimRoot(paths)();
  assert.equal((await stat(join(paths.runDir, 'noded.lock'))).mode & 0o777, 0o600);
});

/** Claims the root, starts a child that outlives it, and prints the child's pid. */
function script(paths: RootPaths): string {
  const modules = ['shared/sys/claim-root.ts', 'shared/paths/root-paths.ts'].map((name) =>
    JSON.stringify(join(import.meta.dirname, '../../..', name)),
  );
  return `Promise.all([${modules.map((name) => `import(${name})`).join(',')}]).then(([claim, paths]) => {
    claim.claimRoot(paths.createRootPaths(${JSON.stringify(paths.root)}));
    const { spawn } = require('node:child_process');
    const child = spawn('sleep', ['30'], { detached: true, stdio: 'ignore' });
    process.stdout.write(String(child.pid));
    setInterval(() => undefined, 1000);
  });`;
}
