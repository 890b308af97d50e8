import assert from 'node:assert/strict';
import { readdir, rename, rm, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { instanceInfo, type InstanceInfo } from '#shared/contract/instance.ts';
import { createLab, type Lab, type ProgramName } from '../../scripts/demo/lab.ts';
import { killNode } from '../lab/kill-node.ts';

const NAME = 'web1.example.com';
const LIMIT_MS = 120_000;

let lab: Lab;
before(async () => {
  lab = await createLab('gk');
  await lab.startNode();
  const image = join(lab.paths.root, 'empty.raw');
  await writeFile(image, '');
  await truncate(image, 1024 * 1024);
  // The guest is firmware without a boot device, in a QEMU process with a channel.
  const machine = ['-B', 'memory=32', '-s', '1M', '--no-nics', '-C', 'yes'];
  await succeed('gnt-instance', 'add', '--no-install', '--os-image', image, ...machine, NAME);
  await succeed('gnt-instance', 'startup', NAME);
});
after(() => lab.dispose());

async function succeed(program: ProgramName, ...args: string[]): Promise<string> {
  const { status, stdout, stderr } = await lab.run(program, args);
  assert.equal(status, 0, `${program} ${args.join(' ')}: ${stderr}`);
  return stdout;
}

async function show(): Promise<InstanceInfo> {
  return instanceInfo.parse(JSON.parse(await succeed('gnt-instance', 'info', '--json', NAME)));
}

/** Polls, because actions of the node itself have no event. */
async function untilRunning(isAnother: (pid: number) => boolean): Promise<InstanceInfo> {
  for (const deadline = Date.now() + LIMIT_MS; Date.now() < deadline; await delay(200)) {
    const info = await show();
    if (info.running !== null && isAnother(info.running.pid)) return info;
  }
  return assert.fail(`${NAME} was not started`);
}

/** Kills a QEMU process, as a power cut does. */
async function killMachine(pid: number): Promise<void> {
  process.kill(pid, 'SIGKILL');
  for (const deadline = Date.now() + LIMIT_MS; Date.now() < deadline; await delay(50)) {
    if ((await lab.processes()).every((each) => each.pid !== pid)) return;
  }
  assert.fail(`process ${pid} does not end`);
}

test('a machine whose store was moved away is adopted by name, untouched', async () => {
  const before = await show();
  await lab.stopNode();
  const { stateDir } = lab.paths;
  for (const name of await readdir(stateDir)) {
    if (name.startsWith('store.sqlite'))
      await rename(join(stateDir, name), join(stateDir, `moved-${name}`));
  }
  await lab.startNode();
  const fields = ['-o', 'name,pnode,status,pid', '--no-headers', '--separator=|'];
  const row = `${NAME}|node1.example.com|ERROR_orphan|${before.running?.pid}\n`;
  assert.equal(await succeed('gnt-instance', 'list', ...fields), row);
  assert.match(await succeed('gnt-node', 'doctor'), /gnt-instance adopt/);
  await succeed('gnt-instance', 'adopt', NAME);
  const after = await show();
  assert.equal(after.running?.pid, before.running?.pid);
  assert.equal(after.status, 'running');
  assert.deepEqual(after.channel, before.channel);
  // Its metadata stay available: noded, metad and the record agree on the guest of the channel.
  const metadata = ['metadata', NAME, '/ganeti/latest/meta_data.json'];
  assert.match(await succeed('gnt-instance', ...metadata), new RegExp(before.uuid));
});

test('a machine that noded knows nothing of keeps its disk, and is named', async () => {
  const { uuid, running } = await show();
  await killNode(lab);
  await rm(join(lab.paths.vmDir, uuid), { recursive: true });
  await lab.startNode();
  assert.equal((await show()).status, 'ERROR_down');
  for (const [command, ...args] of [
    ['remove', '--force'],
    ['reinstall', '--force'],
    ['shutdown'],
    ['startup'],
  ]) {
    const { status, stderr } = await lab.run('gnt-instance', [command ?? '', ...args, NAME]);
    assert.equal(status, 2, `${command}: ${stderr}`);
    assert.match(stderr, new RegExp(`error\\[DISK_IN_USE\\].*process ${running?.pid} `));
  }
  await killMachine(running?.pid ?? assert.fail('it does not run'));
});

test('after a reboot of the host it is started again, by a job', async () => {
  await lab.stopNode();
  await writeFile(lab.paths.bootFile, 'another boot\n');
  await lab.startNode();
  await untilRunning(() => true);
  const jobs = await succeed('gnt-job', 'list', '--no-headers', '-o', 'status,summary');
  assert.match(jobs, new RegExp(`success +INSTANCE_STARTUP\\(${NAME}\\)`));
});

test('a machine that crashes is started again where that was asked for', async () => {
  await succeed('gnt-instance', 'modify', '--autostart', 'restarts=1', NAME);
  const pid = (await show()).running?.pid ?? assert.fail('it does not run');
  await killMachine(pid);
  await untilRunning((other) => other !== pid);
});

test('nothing is left of it', async () => {
  await succeed('gnt-instance', 'remove', '--force', '--shutdown-timeout=0', NAME);
  assert.equal(await lab.stopNode(), 0);
  assert.deepEqual(await lab.findLeftovers(), []);
});
