import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import type { LifecycleInfo } from '#shared/contract/lifecycle.ts';
import { findSecret } from '../../scripts/demo/find-secret.ts';
import { createLab, type Lab, type ProgramResult } from '../../scripts/demo/lab.ts';
import { killNode } from '../lab/kill-node.ts';
import { disposeLab } from './support/end-lab.ts';
import { writeTinyDisk } from '../noded/vmm/tiny-guest.ts';
import { AgentGuest } from './support/agent-guest.ts';
import { addOs, infoOf, succeed } from './support/ask-nodes.ts';

/**
 * The real node daemon, metad and the guest's agent. Each daemon is killed in each state of a
 * guest. test/metad/guest-agent.slow.test.ts tests the agent in each shell.
 */
const NAME = 'lists.example.com';
/** Interval of polls for states without an event. Only a hang reaches the limit. */
const POLL_MS = 50;
const LIMIT_MS = 60_000;
const canary = `canary-${randomBytes(24).toString('hex')}`;
/** Declares an input, so that it needs no secret. */
const HEAD = `#!/bin/sh
# ---
# RightScript Name: one of them
# Inputs:
#   PLAIN: {Default: "text:plain"}
# ...
read -r boot </proc/sys/kernel/random/boot_id
`;
/**
 * Returns a script that prints before and after the point where it can be held, each word once per
 * boot.
 */
function scriptOf(name: string, more = ''): string {
  return `${HEAD}name=${name} lib=/var/lib
echo "$name ran in $boot at $(cat $lib/turn)" >>$lib/ran
echo "$name begins in $boot at $(cat $lib/turn)"
if [ -e $lib/hold.$name ]; then
  : >$lib/at.$name
  while [ -e $lib/hold.$name ]; do sleep 0.1; done
  rm $lib/at.$name
fi
${more}
echo "$name ends in $boot at $(cat $lib/turn)"
`;
}

let lab: Lab;
let guest: AgentGuest;
let secretFile = '';
let auditFile = '';
let turn = 0;

before(async () => {
  lab = await createLab('gnt-lk');
  const file = (name: string): string => join(lab.paths.root, name);
  secretFile = file('secret');
  await writeFile(secretFile, canary, { mode: 0o600 });
  // Only its agent can power it off.
  await writeTinyDisk(file('tiny'), { hasPowerButton: false });
  const scripts = {
    first: scriptOf('first'),
    tells: '#!/bin/sh\necho "it is $owner"\n[ ! -e /var/lib/strand ]\n',
    deploy: scriptOf('deploy'),
    leave: scriptOf('leave', 'echo "left for $DECOM_REASON"'),
  };
  for (const [name, script] of Object.entries(scripts)) await writeFile(file(name), script);
  await lab.startNode();
  await addOs(lab, 'tiny', [`dd if=${file('tiny')} of="$DISK_0_PATH" conv=notrunc status=none`]);
  await succeed(lab, 'gnt-os', 'trust', 'tiny');
  await succeed(
    ...[lab, 'gnt-instance', 'add', '-o', 'tiny', '--enable-safe-install', 'no', '--no-start'] as const,
    ...['-C', 'yes', '--no-nics', '-s', '1M', '-B', 'memory=32', '-H', 'decommission_timeout=60'],
    ...['--os-parameters-secret', `owner=@${secretFile}`],
    ...['--boot-script', file('first'), '--boot-script', file('tells')],
    ...['--operational-script', file('deploy'), '--decommission-script', file('leave'), NAME],
  ); // prettier-ignore
  guest = await AgentGuest.create(lab, NAME);
  auditFile = join(lab.paths.logDir, `audit-${(await infoOf(lab, NAME)).uuid}.log`);
});

after(async () => {
  // Undefined if `before` failed.
  await (guest as AgentGuest | undefined)?.[Symbol.asyncDispose]();
  await lab.run('gnt-instance', ['remove', '--force', '--shutdown-timeout=0', NAME]);
  await disposeLab(lab);
});

const lifecycle = async (): Promise<LifecycleInfo | null> =>
  (await infoOf(lab, NAME).catch(() => null))?.lifecycle ?? null;

async function until(what: string, isSo: () => Promise<boolean>): Promise<void> {
  for (const deadline = Date.now() + LIMIT_MS; !(await isSo()); await sleep(POLL_MS)) {
    if (Date.now() < deadline) continue;
    const audit = await readFile(auditFile, 'utf8').catch(() => '');
    assert.fail(`${what}: ${JSON.stringify(await lifecycle())}\n${audit}\n${guest.system.log}`);
  }
}

const untilState = (state: string): Promise<void> =>
  until(state, async () => (await lifecycle())?.state === state);

/** Makes a script wait. Removes the mark of an earlier script that was ended while it was held. */
async function hold(name: string): Promise<void> {
  await guest.system.remove(`at.${name}`);
  await guest.system.write(`hold.${name}`, '');
}
const release = (name: string): Promise<void> => guest.system.remove(`hold.${name}`);
/** Waits until the host also knows of the script's start. */
const isHeld = (name: string): Promise<void> =>
  until(`${name} is held`, async () => {
    const isThere = (await guest.system.read(`at.${name}`)) !== null;
    const { script = null, exitStatus = null } = (isThere ? await lifecycle() : null) ?? {};
    return script !== null && exitStatus === null;
  });

type Kill = () => Promise<void>;

async function metadPid(): Promise<number> {
  const metad = (await lab.processes()).find(({ command }) => command.includes('--control-socket'));
  assert.ok(metad, 'metad does not run');
  return metad.pid;
}

const KILLS: Readonly<Record<string, Kill>> = {
  noded: async () => {
    await killNode(lab);
    await lab.startNode();
  },
  metad: async () => {
    const former = await metadPid();
    process.kill(former, 'SIGKILL');
    await until('another metad', async () => (await metadPid().catch(() => former)) !== former);
  },
  both: async () => {
    const metad = await metadPid();
    await killNode(lab);
    process.kill(metad, 'SIGKILL');
    await lab.startNode();
  },
};

/** Tells whether the store has a script's start, which follows the event by a moment. */
function isWritten(script: string | null): boolean {
  using database = new DatabaseSync(lab.paths.storeFile, { readOnly: true });
  const find = database.prepare("SELECT value FROM records WHERE collection = 'instances'");
  const record = JSON.parse(String(find.get()?.['value'])) as InstanceRecord;
  return record.lifecycle?.script === script;
}

/** Checks that the known state of the guest is the same before and after a kill. */
async function keeps(state: string, kill: Kill): Promise<void> {
  await untilState(state);
  const before = await lifecycle();
  await until('written', () => Promise.resolve(isWritten(before?.script ?? null)));
  await kill();
  const after = await lifecycle();
  assert.deepEqual(
    [after?.run, after?.state, after?.kind, after?.script],
    [before?.run, before?.state, before?.kind, before?.script],
  );
}

async function audit(): Promise<string> {
  return await readFile(auditFile, 'utf8');
}

const command = (...args: readonly string[]): Promise<ProgramResult> =>
  lab.run('gnt-instance', args, { timeoutMs: LIMIT_MS });

async function run(): Promise<ProgramResult> {
  turn += 1;
  await guest.system.write('turn', `${turn}`);
  return await command('run', NAME, 'deploy');
}

async function deploy(): Promise<void> {
  const { status, stderr } = await run();
  assert.equal(status, 0, `${stderr}\n${await audit()}\n${guest.system.log}`);
}

for (const [name, kill] of Object.entries(KILLS))
  test(`a guest's state outlives the death of ${name} in each state, and nothing runs or is told twice`, async () => {
    const secret = ['--os-parameters-secret', `owner=@${secretFile}`];
    for (const flag of ['strand', 'ran']) await guest.system.remove(flag);
    await guest.system.write('turn', '0');
    await hold('first');
    await succeed(lab, 'gnt-instance', 'startup', ...secret, NAME);
    await guest.boot();
    await isHeld('first');
    await keeps('booting', kill);
    await release('first');
    await untilState('operational');
    await keeps('operational', kill);
    await deploy();

    await hold('deploy');
    const running = run();
    await isHeld('deploy');
    await keeps('operational', kill);
    await release('deploy');
    const { status } = await running;
    // The job ended with the daemon. Its client may have read the result or lost the connection.
    assert.equal(status === 0, name === 'metad');
    await deploy();

    await hold('leave');
    const rebooting = command('reboot', NAME);
    await isHeld('leave');
    await keeps('decommissioning', kill);
    await guest.system.write('strand', '');
    await release('leave');
    await rebooting;
    await untilState('stranded');
    await keeps('stranded', kill);
    await deploy();

    await hold('leave');
    await hold('power');
    const stopping = command('shutdown', NAME);
    await isHeld('leave');
    await keeps('decommissioning', kill);
    await release('leave');
    await keeps('decommissioned', kill);
    assert.equal((await lifecycle())?.kind, 'stop');
    await release('power');
    await guest.wentOff().catch(async (error: unknown) => {
      throw new Error(await audit(), { cause: error });
    });
    await stopping;
    await until('off', async () => (await infoOf(lab, NAME)).running === null);
    assert.equal((await lifecycle())?.state, 'decommissioned');

    const lines = [await audit(), (await guest.system.read('ran')) ?? ''].join('\n').split('\n');
    const said = lines.filter((line) => / (begins|ends|ran) in /.test(line));
    assert.deepEqual(
      said.filter((line, at) => said.indexOf(line) !== at),
      [],
      `${lines.join('\n')}\n${guest.system.log}`,
    );
    assert.deepEqual(await findSecret(canary, lab.paths.root, (path) => path === secretFile), []);
  });
