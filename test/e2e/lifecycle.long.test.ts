import assert from 'node:assert/strict';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { after, before, test } from 'node:test';
import { type InstanceInfo, instanceInfo } from '#shared/contract/instance.ts';
import { buildGuestImage } from '../../scripts/guest-image/build.ts';
import { createLab, type Lab } from '../../scripts/demo/lab.ts';
import { endLab } from './support/end-lab.ts';
import { placeImage, WITHOUT_INSTALL } from './support/placed-image.ts';

/**
 * Run lists in a real guest, whose systemd reports why it shuts down. guest-agent.slow.test.ts
 * tests the agent in each shell, test/noded/instances/run-lists/ the decisions of the host.
 */
const BOOT_TIMEOUT_MS = 420_000;
const NAME = 'lists.example.com';
/** Runs commands from the host, and fails after the command to strand. */
const BOOT_SCRIPT = `#!/bin/sh
[ ! -e /var/strand ] || exit 3
service=http://169.254.169.254/ganeti/latest
setsid sh -c "while :; do curl -s -m 70 '$service/read?wait=60' >/run/command; [ ! -s /run/command ] || sh /run/command; done" </dev/null >/dev/null 2>&1 &
echo booted
`;
/** An emulated guest on a busy host starts a script ten seconds late. */
const DEADLINE_S = 45;
/** Does not end when the instance is terminated. */
const LEAVE_SCRIPT =
  '#!/bin/sh\necho "left for $DECOM_REASON"\n[ "$DECOM_REASON" != terminate ] || exec sleep 1000\n';
let lab: Lab;
let imagePath: string;

before(async () => {
  imagePath = (await buildGuestImage({ log: () => undefined })).path;
  lab = await createLab('gnt-life');
  const place = async (list: string, name: string, script: string): Promise<void> => {
    const folder = join(lab.paths.runListsDir, list);
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, name), script, { mode: 0o755 });
  };
  await place('boot', 'listen', BOOT_SCRIPT);
  await place('decommission', 'leave', LEAVE_SCRIPT);
  await lab.startNode();
});

after(async () => {
  await lab.run('gnt-instance', ['remove', '--force', '--shutdown-timeout=0', NAME]);
  await endLab(lab);
});

async function succeed(...args: readonly string[]): Promise<string> {
  const options = { timeoutMs: BOOT_TIMEOUT_MS };
  const { status, stdout, stderr } = await lab.run('gnt-instance', args, options);
  assert.equal(status, 0, `${args[0]}: ${stderr}`);
  return stdout;
}

async function info(): Promise<InstanceInfo> {
  return instanceInfo.parse(JSON.parse(await succeed('info', '--json', NAME)));
}

/** Polls a condition: files and lists have no event. */
async function until(what: string, isSo: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + BOOT_TIMEOUT_MS;
  while (!(await isSo())) {
    if (Date.now() > deadline) assert.fail(`${what}: ${JSON.stringify((await info()).lifecycle)}`);
    await sleep(500);
  }
}

async function untilState(state: string): Promise<void> {
  await until(state, async () => (await info()).lifecycle?.state === state);
}

test('a guest runs its lists in each boot, before it goes down for each reason, stranded too, and is cut off at its deadline', async () => {
  const add = ['add', ...WITHOUT_INSTALL, '--os-image', imagePath, '-C', 'yes'];
  await succeed(...add, '-s', '2G', '-B', 'memory=512,vcpus=1', NAME);
  await placeImage(lab, NAME, imagePath);
  await succeed('startup', NAME);
  await untilState('operational');
  const { uuid } = await info();
  const audit = join(lab.paths.logDir, `audit-${uuid}.log`);
  const count = async (text: string): Promise<number> =>
    (await readFile(audit, 'utf8')).split(text).length - 1;
  const isOperationalAfter = (boots: number) => async (): Promise<boolean> =>
    (await count('booted\n')) === boots && (await info()).lifecycle?.state === 'operational';
  const machine = async (): Promise<number | undefined> =>
    (await lab.processes()).find(({ command }) => command.includes(`guest=${NAME}`))?.pid;
  const first = await machine();
  const run = (await info()).lifecycle?.run;

  await succeed('reboot', NAME);
  await until('a reboot by the host', isOperationalAfter(2));
  assert.equal(await count('left for reboot\n'), 1);
  // The QEMU process and the host's run are the same.
  assert.deepEqual([await machine(), (await info()).lifecycle?.run], [first, run]);

  await lab.run('gnt-instance', ['send', NAME], {
    input: 'touch /var/strand; sync; systemctl poweroff\n',
  });
  await until('a power-off by the guest', async () => (await machine()) === undefined);
  assert.equal(await count('left for stop\n'), 1);
  assert.deepEqual(await info().then(({ lifecycle }) => [lifecycle?.state, lifecycle?.kind]), [
    'decommissioned',
    'stop',
  ]);
  await succeed('modify', '-H', `decommission_timeout=${DEADLINE_S}`, NAME);
  await succeed('startup', NAME);
  await untilState('stranded');
  assert.equal((await info()).lifecycle?.exitStatus, 3);
  assert.notEqual((await info()).lifecycle?.run, run);
  // Removal of the instance removes its log, so read it meanwhile.
  let seen = '';
  const removing = new AbortController();
  const watching = (async () => {
    while (!removing.signal.aborted) {
      seen = await readFile(audit, 'utf8').catch(() => seen);
      await sleep(20);
    }
  })();
  await succeed('remove', '--force', NAME).finally(() => removing.abort());
  await watching;
  assert.match(seen, /left for terminate\n/);
  assert.match(
    seen,
    new RegExp(`Failed: its decommission list did not end within ${DEADLINE_S} s\n`),
  );
});
