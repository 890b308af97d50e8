import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { createLab, type Lab, type ProgramResult } from '../../scripts/demo/lab.ts';
import { disposeLab } from './support/end-lab.ts';
import { setTimeout as sleep } from 'node:timers/promises';
import type { JobRecord } from '#shared/contract/job.ts';
import {
  addOs,
  addWords,
  assertRefused,
  infoOf,
  jobsOf,
  statusOf,
  succeed,
} from './support/ask-nodes.ts';

/**
 * Settings of OS definitions and their variants, and their effects, with the real commands. Scripts
 * are trusted ones on the host, so that no QEMU process is needed.
 */
const NAME = 'web1.example.com';
let lab: Lab;

before(async () => {
  lab = await createLab('gnt-defs');
  await lab.startNode();
  await addOs(lab, 'pie', [
    // Another of our programs; with bundles, it is in a bundle of another kind.
    'gnt-channel --help >/dev/null || exit 9',
    'printf "made as <%s>" "$OS_VARIANT" | dd of="$DISK_0_PATH" conv=notrunc',
  ]);
  const folder = join(lab.paths.osSearchPath[0] ?? '', 'pie');
  await writeFile(join(folder, 'variants.list'), 'apple\ncherry\n');
});

after(() => disposeLab(lab));

const gnt = (program: 'instance' | 'os' | 'cluster', ...args: string[]): Promise<ProgramResult> =>
  lab.run(`gnt-${program}`, args, { timeoutMs: 60_000 });
/** Without a command, which costs half a second. */
const setOs = async (name: string, changes: object): Promise<void> => {
  assert.equal(await statusOf(lab, { opcode: 'OS_SET_PARAMS', name, ...changes }), 'success');
};
const offered = async (): Promise<string> =>
  (await succeed(lab, 'gnt-os', 'list', '--no-headers')).trim();
const remove = async (): Promise<void> => {
  assert.equal(await statusOf(lab, { opcode: 'INSTANCE_REMOVE', name: NAME }), 'success');
};

/** Returns the text that the script wrote to the disk of the only instance. */
async function madeAs(): Promise<string> {
  const disks = await succeed(lab, 'gnt-instance', 'activate-disks', '--json', NAME);
  const [disk] = JSON.parse(disks) as readonly { readonly path: string }[];
  const bytes = await readFile(disk?.path ?? '');
  return bytes.toString('latin1').split('\0')[0] ?? '';
}

test('trust in one variant runs the scripts on the host for that one alone', async () => {
  await succeed(lab, 'gnt-os', 'modify', '--trusted', 'yes', 'pie+apple');
  const other = await gnt('instance', ...addWords('pie+cherry', NAME));
  assertRefused(other, 2, 'OS_NOT_TRUSTED', /gnt-os modify --trusted yes pie/);
  assert.equal((await gnt('instance', ...addWords('pie+apple', NAME))).status, 0);
  assert.equal(await madeAs(), 'made as <apple>');
  const trusted = await succeed(lab, 'gnt-os', 'list', '--no-headers', '-o', 'name,trusted');
  assert.match(trusted, /^pie\+apple +Y\npie\+cherry +N$/m);
  await remove();
  await setOs('pie', { trusted: true });
});

test('a blacklisted variant, or OS, is neither installed nor chosen for later, and is in no list', async () => {
  assert.equal(await offered(), 'pie+apple\npie+cherry');
  await succeed(lab, 'gnt-os', 'modify', '--blacklisted', 'yes', 'pie+cherry');
  assert.equal(await offered(), 'pie+apple');
  const cherry = await gnt('instance', ...addWords('pie+cherry', NAME));
  const inGanetisWords =
    /Guest OS 'pie\+cherry' is not allowed for installation\nhint: .*pie\+cherry$/m;
  assertRefused(cherry, 2, 'OS_BLACKLISTED', inGanetisWords);
  await succeed(lab, 'gnt-instance', ...addWords('pie+apple', NAME));
  const chosen = await gnt('instance', 'modify', '-o', 'pie+cherry', NAME);
  assertRefused(chosen, 2, 'OS_BLACKLISTED', inGanetisWords);
  const again = await gnt('instance', 'reinstall', '--no-start', '-o', 'pie+cherry', NAME);
  assertRefused(again, 2, 'OS_BLACKLISTED', inGanetisWords);
  assert.equal((await infoOf(lab, NAME)).osType, 'pie+apple');
  await setOs('pie', { blacklisted: true });
  assert.equal(await offered(), '');
  assertRefused(
    await gnt('instance', 'reinstall', '--no-start', NAME),
    2,
    'OS_BLACKLISTED',
    /hint: Allow it: gnt-os modify --blacklisted no pie$/m,
  );
  await setOs('pie', { blacklisted: false });
  await setOs('pie+cherry', { blacklisted: false });
  await remove();
});

test('a hidden variant is in no list, and can be installed', async () => {
  await succeed(lab, 'gnt-os', 'modify', '--hidden', 'yes', 'pie+cherry');
  assert.equal(await offered(), 'pie+apple');
  await succeed(lab, 'gnt-instance', ...addWords('pie+cherry', NAME));
  assert.equal(await madeAs(), 'made as <cherry>');
  await setOs('pie+cherry', { hidden: false });
  await remove();
});

test('--force-variant takes a variant that is not listed, and nothing that makes a path', async () => {
  const plum = addWords('pie+plum', NAME);
  const refused = await gnt('instance', ...plum);
  assertRefused(
    refused,
    2,
    'OS_VARIANT',
    /does not support variant 'plum'\nhint: .*--force-variant/,
  );
  assertRefused(
    await gnt('instance', ...addWords('pie+../../etc', NAME, '--force-variant')),
    2,
    'OS_VARIANT',
    /'\.\.\/\.\.\/etc' is not a variant name/,
  );
  await succeed(lab, 'gnt-instance', ...plum, '--force-variant');
  assert.equal(await madeAs(), 'made as <plum>');
  // A change of other parameters does not check the present variant.
  await succeed(lab, 'gnt-instance', 'modify', '-O', 'owner=me', NAME);
  assertRefused(await gnt('instance', 'reinstall', '--no-start', NAME), 2, 'OS_VARIANT', /plum/);
  await succeed(lab, 'gnt-instance', 'reinstall', '--no-start', '--force-variant', NAME);
  assertRefused(await gnt('instance', 'modify', '-o', 'pie+fig', NAME), 2, 'OS_VARIANT', /fig/);
  await succeed(lab, 'gnt-instance', 'modify', '--force-variant', '-o', 'pie+fig', NAME);
  assert.equal((await infoOf(lab, NAME)).osType, 'pie+fig');
  await remove();
});

test("the cluster's default OS is installed where nothing is named, and nowhere else", async () => {
  const bare = ['add', '-s', '16M', '--enable-safe-install', 'no', '--no-start'];
  assertRefused(
    await gnt('cluster', 'modify', '--default-os', 'cake'),
    2,
    'OS_NOT_FOUND',
    /Directory for OS cake not found/,
  );
  assertRefused(await gnt('cluster', 'modify', '--default-os', 'pie'), 2, 'OS_VARIANT', /pie/);
  await succeed(lab, 'gnt-cluster', 'modify', '--default-os', 'pie+cherry');
  assert.match(await succeed(lab, 'gnt-cluster', 'info'), /^Default OS: pie\+cherry$/m);
  await setOs('pie', { osParameters: { owner: 'all' } });
  await setOs('pie+cherry', { osParameters: { owner: 'cherries' } });
  await succeed(lab, 'gnt-instance', ...bare, NAME);
  assert.equal(await madeAs(), 'made as <cherry>');
  const { osType, osParametersEffective } = await infoOf(lab, NAME);
  assert.equal(osType, 'pie+cherry');
  assert.deepEqual(osParametersEffective['owner'], {
    ...{ value: 'cherries', visibility: 'public', source: 'os pie+cherry' },
  });
  await remove();
  const image = join(lab.paths.root, 'an.img');
  await writeFile(image, Buffer.alloc(4096));
  const add = ['add', '-s', '16M', '--no-install', '--os-image', image, NAME];
  await succeed(lab, 'gnt-instance', ...add);
  assert.equal((await infoOf(lab, NAME)).osType, null);
  await remove();
  await succeed(lab, 'gnt-cluster', 'modify', '--default-os', 'none');
  assertRefused(await gnt('instance', ...bare, NAME), 2, 'VALIDATION', /No guest OS or OS image/);
});

test('diagnose tells where a definition is and what is wrong with it', async () => {
  await addOs(lab, 'torte', ['true']);
  const broken = join(lab.paths.osSearchPath[0] ?? '', 'torte/ganeti_api_version');
  await writeFile(broken, '99\n');
  const { status, stdout } = await gnt('os', 'diagnose');
  assert.equal(status, 1);
  assert.match(stdout, /^OS: pie \[global status: valid\] \[trusted\]$/m);
  assert.match(stdout, /^OS: torte \[global status: invalid\]/m);
  assert.match(stdout, /problem: API version mismatch/);
});

test('modify -C switches the channel for later, and a login is asked for whole', async () => {
  await succeed(lab, 'gnt-instance', ...addWords('pie+apple', NAME));
  const before = await infoOf(lab, NAME);
  assert.equal(before.communication, false);
  await succeed(lab, 'gnt-instance', 'modify', '-C', 'yes', NAME);
  const on = await infoOf(lab, NAME);
  assert.deepEqual([on.communication, on.channel], [true, before.channel]);
  await succeed(lab, 'gnt-instance', 'modify', '-c', 'no', NAME);
  assert.equal((await infoOf(lab, NAME)).communication, false);
  assertRefused(await gnt('instance', 'modify', '-C', 'maybe', NAME), 2, 'USAGE', /maybe/);
  const packaged = ['--personalization-package', 'http://127.0.0.1:9/web.tar.gz'];
  const password = ['--personalization-password', 'half'];
  const halves = await gnt('instance', 'reinstall', '--no-start', ...packaged, ...password, NAME);
  assertRefused(halves, 2, 'SECRETS_NEEDED', /personalization-user/);
  const words = addWords('pie+apple', 'web2.example.com', ...packaged, ...password);
  assertRefused(await gnt('instance', ...words), 2, 'SECRETS_NEEDED', /personalization-user/);
  assert.doesNotMatch(halves.stderr.replaceAll(/warning.*/g, ''), /half/);
  assert.equal((await infoOf(lab, NAME)).personalizationPackage, null);
  await remove();
});

test('trust that is taken back while an installation waits for its turn counts for it', async () => {
  await lab.stopNode();
  await lab.startNode('--max-installs', '1');
  const gate = join(lab.paths.osSearchPath[0] ?? '', '../gate');
  await addOs(lab, 'slow', [`until [ -e '${gate}' ]; do sleep 0.05; done`]);
  await setOs('slow', { trusted: true });
  await setOs('pie', { trusted: true });
  const until = async (name: string, is: (job: JobRecord) => boolean): Promise<void> => {
    while (!(await jobsOf(lab)).some((job) => job.instance === name && is(job))) await sleep(50);
  };
  const first = gnt('instance', ...addWords('slow', 'slow.example.com'));
  await until('slow.example.com', ({ status }) => status === 'running');
  const second = gnt('instance', ...addWords('pie+apple', NAME));
  await until(NAME, ({ waitsBecause }) => Boolean(waitsBecause));
  await setOs('pie', { trusted: false });
  await writeFile(gate, '');
  assert.equal((await first).status, 0);
  const inWords = /would run on the host, but the OS is not trusted/;
  assertRefused(await second, 1, 'OS_NOT_TRUSTED', inWords);
  assert.equal(await madeAs(), '', 'its script did not run');
  await remove();
  await statusOf(lab, { opcode: 'INSTANCE_REMOVE', name: 'slow.example.com' });
});
