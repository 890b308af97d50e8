import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rename, rm, stat } from 'node:fs/promises';
import { spawnSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { ChannelLab, METAD_UID } from './support/channel-lab.ts';
import { LuxiClient } from './support/luxi-client.ts';

const WAIT_MS = 10_000;

let forbidden: string;
before(async () => {
  forbidden = await mkdtemp(join(tmpdir(), 'gnt-metad-main-'));
});
after(() => rm(forbidden, { recursive: true }));

/** Starts it as a user without rights, and returns its errors when it ends. */
function startRefused(...options: readonly string[]): { status: number | null; stderr: string } {
  const [uid, gid] = [METAD_UID, METAD_UID];
  const program = ['metad/main.ts', '--ganeti', '--bind', '127.0.0.1', '--port', '8099'];
  const ended = spawnSync(process.execPath, [...program, ...options], {
    uid,
    gid,
    encoding: 'utf8',
    timeout: WAIT_MS,
  });
  return { status: ended.status, stderr: ended.stderr };
}

test('a folder or a log that the user may not write is refused with the way out', async () => {
  const socket = join(forbidden, 'socket/ganeti-metad');
  const folder = startRefused('--ganeti-socket', socket);
  assert.match(folder.stderr, /^error\[NOT_ALLOWED\]: EACCES: permission denied, mkdir/);
  assert.match(
    folder.stderr,
    /^hint: Run it as root or as the user gnt-metad of Ganeti, or give /m,
  );
  await mkdir(join(forbidden, 'log'), { mode: 0o700 });
  const log = startRefused('--log-file', join(forbidden, 'log/meta-daemon.log'));
  assert.match(log.stderr, /^error\[NOT_ALLOWED\]: EACCES: permission denied, open .*daemon\.log/);
  for (const { status } of [folder, log]) assert.equal(status, 2);
});

test('SIGHUP after a rotation opens a new log file, also when one rotation failed', async () => {
  await using lab = await ChannelLab.create((directory) => [
    ...['--ganeti', '--ganeti-socket', join(directory, 'socket/ganeti-metad')],
    ...['--log-file', join(directory, 'meta-daemon.log')],
  ]);
  const file = join(lab.directory, 'meta-daemon.log');
  assert.equal((await stat(file)).mode & 0o777, 0o600);
  assert.match(await readFile(file, 'utf8'), /"event":"metad\.ready"/);
  // A folder in its place cannot be opened.
  await rename(file, `${file}.1`);
  await mkdir(file);
  process.kill(lab.metadPid, 'SIGHUP');
  await contains(`${file}.1`, 'metad.log-not-reopened');
  await rm(file, { recursive: true });
  process.kill(lab.metadPid, 'SIGHUP');
  await contains(file, 'metad.log-reopened');
  using client = await LuxiClient.open(join(lab.directory, 'socket/ganeti-metad'));
  assert.deepEqual(await client.call('echo', 'alive'), { success: true, result: 'alive' });
  await client.call('nothing', 1);
  await contains(file, 'luxi.refused');
  assert.doesNotMatch(await readFile(`${file}.1`, 'utf8'), /luxi\.refused|metad\.log-reopened/);
  assert.equal(lab.log, '');
});

async function contains(file: string, text: string): Promise<void> {
  const deadlineMs = performance.now() + WAIT_MS;
  for (;;) {
    const found = await readFile(file, 'utf8').catch(() => '');
    if (found.includes(text)) return;
    assert.ok(performance.now() < deadlineMs, `${file} never contained ${text}: ${found}`);
    await sleep(20);
  }
}
