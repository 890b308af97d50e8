import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { run } from '#shared/process/run.ts';
import {
  type BoundCommands,
  createBoundCommands,
} from '../../../../noded/storage/drivers/volumes/bound-commands.ts';
import { createLvm } from '../../../../noded/storage/drivers/lvm/lvm.ts';

const LVM = join(import.meta.dirname, '../../../../noded/storage/drivers/lvm/lvm.ts');
const PATIENCE = { readMs: 300, changeMs: 300 };

async function makeFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'gnt-commands-'));
  t.after(() => rm(folder, { recursive: true }));
  return folder;
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  const endMs = performance.now() + 20_000;
  while (!(await isSo())) {
    assert.ok(performance.now() < endMs, 'it never came to that');
    await sleep(20);
  }
}

const answers = async (commands: BoundCommands): Promise<boolean> =>
  commands.read('echo', ['ok']).then(
    (text) => text === 'ok',
    () => false,
  );

/** Writes to a closed pipe before its work is done. */
const slowly = (folder: string): string =>
  `until [ -e ${folder}/go ]; do sleep 0.05; done; echo a; echo b >&2; echo c; touch ${folder}/done`;

test('a change that takes too long is told, goes on, and nothing begins beside it', async (t) => {
  const folder = await makeFolder(t);
  const commands = createBoundCommands('LVM', PATIENCE);
  await assert.rejects(commands.change('sh', ['-c', slowly(folder)]), {
    code: 'COMMAND_TIMEOUT',
    message: 'sh -c is still running after 0.3 s',
    hint: /wait until it has ended, and repeat the command/,
  });
  const beside = {
    code: 'COMMAND_TIMEOUT',
    message: /^sh -c was started \d+ s ago and is still running/,
  };
  await assert.rejects(commands.change('touch', [join(folder, 'beside')]), beside);
  await assert.rejects(commands.read('echo', ['ok']), beside);
  await writeFile(join(folder, 'go'), '');
  await until(() => answers(commands));
  assert.ok(existsSync(join(folder, 'done')), 'it was killed');
  assert.equal(existsSync(join(folder, 'beside')), false);
});

test('reading has a bound, and one that hangs is waited for once', async (t) => {
  const folder = await makeFolder(t);
  const lvm = createLvm({
    ...createBoundCommands('LVM', PATIENCE),
    read: createBoundCommands('LVM', PATIENCE).read.bind(null, 'sh', ['-c', slowly(folder)]),
  });
  await assert.rejects(lvm.listVolumes(), {
    code: 'COMMAND_TIMEOUT',
    message: /still running after 0.3 s/,
  });
  const beforeMs = performance.now();
  for (let many = 0; many < 20; many += 1)
    await assert.rejects(lvm.listGroups(), { code: 'COMMAND_TIMEOUT' });
  // A wait for each would take 6 s.
  assert.ok(performance.now() - beforeMs < 3000, 'it was waited for again');
  await writeFile(join(folder, 'go'), '');
  await until(() => Promise.resolve(existsSync(join(folder, 'done'))));
});

test('a change goes on when the daemon that asked for it is killed, or ends', async (t) => {
  for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
    const folder = await makeFolder(t);
    const asked = JSON.stringify(`touch ${folder}/begun; ${slowly(folder)}`);
    const module = JSON.stringify(
      join(import.meta.dirname, '../../../../noded/storage/drivers/volumes/bound-commands.ts'),
    );
    const daemon = spawn(process.execPath, [
      '--input-type=module',
      '-e',
      `process.on('SIGTERM', () => process.exit(0));
       const { createBoundCommands } = await import(${module});
       await createBoundCommands().change('sh', ['-c', ${asked}]);`,
    ]);
    const ended = once(daemon, 'exit');
    await until(() => Promise.resolve(existsSync(join(folder, 'begun'))));
    daemon.kill(signal);
    await ended;
    await writeFile(join(folder, 'go'), '');
    await until(() => Promise.resolve(existsSync(join(folder, 'done'))));
  }
});

test('an lvm that is not there is told as that, one that was killed is not', async () => {
  const asking = (command: string, ...args: readonly string[]) => {
    const read = async (): Promise<string> =>
      (await run(command, args, { timeoutMs: null })).stdout;
    return createLvm({ read, change: read }).listVolumes();
  };
  await assert.rejects(asking('gnt-no-such-command'), {
    code: 'HOST_PREREQUISITE',
    hint: 'apt-get install lvm2',
  });
  await assert.rejects(asking('sh', '-c', 'kill -9 $$'), { code: 'COMMAND_FAILED' });
});

test('zeros are written no more by what a killed daemon began', async (t) => {
  const folder = await makeFolder(t);
  const pidFile = join(folder, 'pid');
  const program = `#!/bin/sh\necho $$ >${pidFile}.new; mv ${pidFile}.new ${pidFile}; exec sleep 1000\n`;
  await writeFile(join(folder, 'blkdiscard'), program, { mode: 0o755 });
  const zero = `import(${JSON.stringify(LVM)}).then(({ createLvm }) => createLvm().zero({ group: 'vg', name: 'lv' }, 0, 1 << 20))`;
  // The command is found at its usual path, so a mount namespace replaces it.
  const script = `mount --bind ${folder} /usr/local/sbin; exec "$0" -e "$1"`;
  const words = ['--mount', 'sh', '-ec', script, process.execPath, zero];
  const daemon = spawn('unshare', words, { stdio: 'ignore' });
  await until(async () => Promise.resolve(existsSync(pidFile)));
  const pid = (await readFile(pidFile, 'utf8')).trim();
  assert.ok(existsSync(`/proc/${pid}`));
  const ended = once(daemon, 'exit');
  daemon.kill('SIGKILL');
  await ended;
  await until(async () => Promise.resolve(!existsSync(`/proc/${pid}`)));
});
