import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { nodeInfo } from '#shared/contract/api.ts';
import { run } from '#shared/process/run.ts';
import { askSocket } from '../lab/ask-socket.ts';
import { endLab } from './support/end-lab.ts';
import { createVictim, SCRIPT_MS, VICTIM, type Victim } from './support/victim.ts';

/** Kills each program of an installation in the appliance. */
let victim: Victim;

before(async () => {
  victim = await createVictim('gnt-fail');
  await victim.lab.startNode();
});
after(() => endLab(victim.lab));
afterEach(() => victim.clear());

async function metadPid(): Promise<number | null> {
  const { body } = await askSocket(victim.lab.paths.nodedSocket, '/v1/node');
  return nodeInfo.parse(JSON.parse(body)).metad.pid;
}

test('fails when QEMU is killed in the middle of a script', async () => {
  const adding = victim.add('--os-image', victim.image, '-o', 'sleeper', '-s', '32M');
  await victim.untilStage('os-scripts');
  const { stdout } = await run('pgrep', ['-f', `qemu-system.*${(await victim.info()).instanceId}`]);
  for (const pid of stdout.trim().split('\n')) process.kill(Number(pid), 'SIGKILL');
  await victim.assertFailedAndRemove(await adding, 'APPLIANCE_CRASHED', 'os-scripts', /SIGKILL/);
});

test('goes on when metad is killed in the middle of a script: cancelling ends the machine long before its script would', async () => {
  const adding = victim.add('--os-image', victim.image, '-o', 'sleeper', '-s', '32M');
  await victim.untilStage('os-scripts');
  const before = await metadPid();
  process.kill(before ?? assert.fail('metad does not run'), 'SIGKILL');
  for (let pid = await metadPid(); pid === null || pid === before; pid = await metadPid())
    await sleep(100);
  assert.equal((await victim.info()).status, 'installing');
  const jobId = (await victim.info()).install?.jobId;
  const startedAt = Date.now();
  assert.equal((await victim.lab.run('gnt-job', ['cancel', String(jobId)])).status, 0);
  const result = await adding;
  const tookMs = Date.now() - startedAt;
  assert.ok(tookMs < SCRIPT_MS / 10, `the cancelled job took ${tookMs} ms to end`);
  assert.equal(result.status, 1, result.stderr);
  assert.match(result.stderr, /JOB_CANCELED/);
  assert.equal((await victim.info()).install?.state, 'canceled');
  await victim.remove();
});

test('explains an installation that a kill of noded interrupted, and a reinstallation too, which starts what it had stopped on its old disks', async () => {
  const adding = victim.add('--os-image', victim.image, '-o', 'sleeper', '-s', '32M');
  await victim.untilStage('os-scripts');
  victim.lab.node().kill('SIGKILL');
  // With one place, a leaked place would block the next installation.
  await victim.lab.startNode('--max-installs', '1');
  // The command waits for the new daemon, which reports the fate of the job.
  const result = await adding;
  assert.equal(result.status, 1, result.stderr);
  assert.match(result.stderr, /JOB_INTERRUPTED/);
  const shown = await victim.info();
  assert.equal(shown.status, 'install_failed');
  assert.equal(shown.install?.stage, 'os-scripts');
  assert.equal(shown.install.error?.code, 'JOB_INTERRUPTED');
  assert.match(shown.explanation, /reinstall/);
  const again = await victim.reinstall('-o', 'hello');
  assert.equal(again.status, 0, again.stderr);
  assert.equal((await victim.info()).installState, 'installed');

  const disks = await victim.digestDisks();
  const started = await victim.lab.run('gnt-instance', ['startup', VICTIM]);
  assert.equal(started.status, 0, started.stderr);
  const before = await victim.info();
  const pid = before.running?.pid ?? assert.fail('it does not run');
  const installing = victim.lab.run('gnt-instance', [
    ...['reinstall', '--force', '--shutdown-timeout=0', '-o', 'sleeper', VICTIM],
  ]);
  await victim.untilStage('os-scripts');
  assert.throws(() => process.kill(pid, 0), { code: 'ESRCH' });
  victim.lab.node().kill('SIGKILL');
  await victim.lab.startNode();
  const interrupted = await installing;
  assert.equal(interrupted.status, 1, interrupted.stderr);
  assert.match(interrupted.stderr, /JOB_INTERRUPTED/);
  let after = await victim.info();
  for (; after.running === null; after = await victim.info()) await sleep(100);
  assert.equal(after.status, 'running');
  assert.equal(after.installState, 'installed');
  assert.equal(after.instanceId, before.instanceId);
  assert.equal(after.osType, before.osType);
  assert.deepEqual(await victim.digestDisks(), disks);
});
