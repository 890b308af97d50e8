import assert from 'node:assert/strict';
import { cp, mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { JobRecord } from '#shared/contract/job.ts';
import { askSocket } from '../../../lab/ask-socket.ts';
import { createLab, type Lab } from '../../../../scripts/demo/lab.ts';
import { unpackPackages } from '../../../metad/support/foreign-clients.ts';

/** Runs scripts of definitions on the host of a real node, also Debian's own. No instance boots. */
const PACKAGES = ['ganeti-instance-debootstrap', 'ganeti-os-noop'];
const SCRIPTS = ['create', 'import', 'export', 'rename', 'verify'];

let lab: Lab;
let definitions: string;

before(async () => {
  lab = await createLab('gnt-os');
  definitions = join(lab.paths.root, 'srv/ganeti/os');
  const tree = await unpackPackages('os-definitions', PACKAGES);
  await cp(join(tree, 'usr/share/ganeti/os'), definitions, {
    recursive: true,
    verbatimSymlinks: true,
  });
  // The link leads to /etc, which has the variants only for an installed package.
  const variants = join(definitions, 'debootstrap/variants.list');
  await rm(variants);
  await symlink(join(tree, 'etc/ganeti/instance-debootstrap/variants.list'), variants);
  await addOs('own');
  await lab.startNode();
});

after(async () => {
  await lab.stopNode();
  const leftovers = await lab.findLeftovers();
  await lab.dispose();
  assert.deepEqual(leftovers, []);
});

async function addOs(name: string, bodies: Readonly<Record<string, string>> = {}): Promise<void> {
  const folder = join(definitions, name);
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'ganeti_api_version'), '20\n');
  await writeFile(join(folder, 'parameters.list'), 'color A color\npassword A password\n');
  for (const script of SCRIPTS) {
    const body = bodies[script] ?? 'exit 0';
    await writeFile(join(folder, script), `#!/bin/sh\n${body}\n`, { mode: 0o755 });
  }
}

async function runJob(opcode: object): Promise<JobRecord> {
  const { body } = await askSocket(lab.paths.nodedSocket, '/v1/jobs', {
    method: 'POST',
    body: opcode,
  });
  const { id } = JSON.parse(body) as { id?: number };
  assert.ok(id, body);
  await askSocket(lab.paths.nodedSocket, `/v1/jobs/${id}/events`);
  const answer = await askSocket(lab.paths.nodedSocket, `/v1/jobs/${id}`);
  return JSON.parse(answer.body) as JobRecord;
}

function add(name: string, osType: string, more: object = {}): Promise<JobRecord> {
  const disks = [{ sizeBytes: 1024 ** 2 }];
  return runJob({ opcode: 'INSTANCE_CREATE', name, osType, disks, start: false, ...more });
}

function rename(name: string, newName: string): Promise<JobRecord> {
  return runJob({ opcode: 'INSTANCE_RENAME', name, newName });
}

function trust(name: string, trusted = true): Promise<JobRecord> {
  return runJob({ opcode: 'OS_SET_PARAMS', name, trusted });
}

function messagesOf({ log }: JobRecord): string {
  return log.map(({ message }) => message).join('\n');
}

test("Debian's definitions are valid as they are", async () => {
  const { status, stdout } = await lab.run('gnt-os', ['diagnose']);
  assert.equal(status, 0, stdout);
  assert.match(
    stdout,
    /OS: debootstrap .*valid(.|\n)*variants: default\n.*parameters: filesystem\n/,
  );
  assert.match(stdout, /OS: noop .*valid(.|\n)*on the node: create, export, import, rename\n/);
});

test("Debian's noop installs, renames and reinstalls once it is trusted", async () => {
  const refused = await add('noop1.example.com', 'noop');
  assert.equal(refused.error?.code, 'OS_NOT_TRUSTED');
  await trust('noop');
  const added = await add('noop1.example.com', 'noop');
  assert.equal(added.status, 'success', JSON.stringify(added));
  const renamed = await rename('noop1.example.com', 'noop2.example.com');
  assert.equal(renamed.status, 'success');
  assert.equal(messagesOf(renamed), '');
  const again = await runJob({
    opcode: 'INSTANCE_REINSTALL',
    name: 'noop2.example.com',
    start: false,
  });
  assert.equal(again.status, 'success', JSON.stringify(again));
});

test("Debian's debootstrap refuses a parameter in its own words, before anything is changed", async () => {
  await trust('debootstrap');
  const osType = 'debootstrap+default';
  const wrong = { osParameters: { filesystem: 'xfs' } };
  const refused = await add('deb1.example.com', osType, { ...wrong, install: false });
  assert.equal(refused.error?.code, 'OS_PARAMETER');
  assert.match(refused.error?.message ?? '', /OS validation script failed .*Invalid value 'xfs'/);
  const right = { osParameters: { filesystem: 'ext3' }, install: false };
  const added = await add('deb1.example.com', osType, right);
  assert.equal(added.status, 'success', JSON.stringify(added));
  const modified = await runJob({
    opcode: 'INSTANCE_SET_PARAMS',
    name: 'deb1.example.com',
    ...wrong,
  });
  assert.equal(modified.error?.code, 'OS_PARAMETER');
});

test('a reinstallation with another OS asks for no secret that this OS does not take', async () => {
  await addOs('secretive');
  await addOs('plain');
  await writeFile(join(definitions, 'plain/parameters.list'), '');
  for (const name of ['secretive', 'plain']) await trust(name);
  const osParametersSecret = { password: 's3cret' };
  const added = await add('again1.example.com', 'secretive', { osParametersSecret });
  assert.equal(added.status, 'success', JSON.stringify(added));
  const again = { opcode: 'INSTANCE_REINSTALL', name: 'again1.example.com', start: false };
  assert.equal((await runJob(again)).error?.code, 'SECRETS_NEEDED');
  const refused = await runJob({ ...again, osType: 'plain' });
  assert.equal(refused.error?.code, 'OS_PARAMETER');
  assert.match(refused.error.message, /not supported by the OS plain: password/);
  const unset = { osParametersSecret: { password: null } };
  const moved = await runJob({ ...again, ...unset, osType: 'plain' });
  assert.equal(moved.status, 'success', JSON.stringify(moved));
});

test('two parameters that a script could not tell apart are refused by their names', async () => {
  await addOs('two', { verify: 'exit 0' });
  const osParameters = { color: 'blue', Color: 'red' };
  await runJob({ opcode: 'OS_SET_PARAMS', name: 'two', osParameters });
  await trust('two');
  const refused = await add('two1.example.com', 'two', { install: false });
  assert.equal(refused.error?.code, 'OS_PARAMETER');
  assert.match(
    refused.error.message,
    /'color' \(of os two\) and 'Color' .* same script variable, OSP_COLOR/,
  );
});

test('verify gets all the parameters and nothing of an instance; what it prints is masked', async () => {
  await addOs('own', {
    verify: 'echo "$0 $*"; env | sort | grep -v -e ^PWD= -e ^_=; exit 3',
  });
  await runJob({ opcode: 'OS_SET_PARAMS', name: 'own', osParameters: { color: 'blue' } });
  const secret = { osParametersSecret: { password: 'SECRET-0815' } };
  // Without trust, its verify does not run and the installation is refused.
  const untrusted = await add('own1.example.com', 'own', secret);
  assert.equal(untrusted.error?.code, 'OS_NOT_TRUSTED');
  await trust('own');
  const refused = await add('own1.example.com', 'own', secret);
  const [, ...lines] = refused.error?.message.split(', output: ')[1]?.split('\n') ?? [];
  assert.equal(refused.error?.message.includes('exited with status 3'), true);
  assert.deepEqual(lines, [
    'DEBUG_LEVEL=0',
    'OSP_COLOR=blue',
    'OSP_PASSWORD=<redacted>',
    'OS_API_VERSION=20',
    'OS_NAME=own',
    'OS_VARIANT=',
    'PATH=/sbin:/bin:/usr/sbin:/usr/bin',
  ]);
  const copies = join(lab.paths.root, 'var/lib/gnt/host-copies');
  const script = new RegExp(`${copies}/copy-[^/]+/own/verify parameters\n`);
  assert.match(refused.error?.message ?? '', script);
  assert.deepEqual(await readdir(copies), []);
});

test('rename tells the system on the disk its new name, once it is installed and trusted', async () => {
  const toDisk =
    'printf "%s" "$OLD_INSTANCE_NAME > $INSTANCE_NAME" | dd of="$DISK_0_PATH" conv=notrunc status=none';
  await addOs('own', {
    create: 'test "$INSTANCE_HV_serial_console" = True',
    rename: `${toDisk}\necho "no $OSP_COLOR" >&2; exit 4`,
  });
  await trust('own');
  const hidden = { osParametersPrivate: { color: 'PRIVATE-4711' } };
  const added = await add('own1.example.com', 'own', hidden);
  assert.equal(added.status, 'success', JSON.stringify(added));
  const renamed = await rename('own1.example.com', 'own2.example.com');
  assert.equal(renamed.status, 'success');
  const warning = messagesOf(renamed);
  assert.match(warning, /Could not run OS rename script .* \(but the instance has been renamed/);
  assert.match(warning, /status 4, output: no <redacted>$/);
  const disks = await askSocket(lab.paths.nodedSocket, '/v1/instances/own2.example.com/disks');
  const [{ path }] = JSON.parse(disks.body) as [{ path: string }];
  assert.match(await readFile(path, 'latin1'), /^own1.example.com > own2.example.com\0/);
  await trust('own', false);
  const untrusted = await rename('own2.example.com', 'own3.example.com');
  assert.equal(untrusted.status, 'success');
  assert.match(messagesOf(untrusted), /the guest keeps its host name/);
});
