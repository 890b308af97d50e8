import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { cp, mkdir, open, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { doctorReport, type DoctorReport } from '#shared/contract/api.ts';
import { type InstanceInfo, instanceInfo } from '#shared/contract/instance.ts';
import { jobRecord } from '#shared/contract/job.ts';
import { networkInfo } from '#shared/contract/network.ts';
import type { OpcodeInput } from '#shared/contract/opcode.ts';
import { MIB } from '#shared/units/bytes.ts';
import { createLab, type Lab } from '../../../scripts/demo/lab.ts';
import { askSocket } from '../../lab/ask-socket.ts';

/** Operations of stopped instances, done by a real node. */
const WEB = 'web.example.com';
const MAC = '52:54:00:00:00:01';
let lab: Lab;
/** A local image, which no test installs. */
let osImage: string;

before(async () => {
  lab = await createLab('gnt-one');
  const [osDir = ''] = lab.paths.osSearchPath;
  await mkdir(osDir, { recursive: true });
  await cp(join(import.meta.dirname, '../../../fixtures/os/hello'), join(osDir, 'hello'), {
    recursive: true,
  });
  osImage = join(lab.paths.root, 'image.raw');
  await writeFile(osImage, Buffer.alloc(MIB));
  await lab.startNode();
  await succeed(create(WEB, { disks: [{ sizeBytes: MIB }, { sizeBytes: 2 * MIB, name: 'data' }] }));
});
after(async () => {
  await lab.stopNode();
  const leftovers = await lab.findLeftovers();
  await lab.dispose();
  assert.deepEqual(leftovers, []);
});

type Create = Extract<OpcodeInput, { opcode: 'INSTANCE_CREATE' }>;
function create(name: string, given: Partial<Create> = {}): Create {
  const disks = [{ sizeBytes: MIB }];
  return {
    opcode: 'INSTANCE_CREATE',
    name,
    osImage,
    disks,
    install: false,
    start: false,
    ...given,
  };
}
const modify = (given: object): OpcodeInput => ({
  ...{ opcode: 'INSTANCE_SET_PARAMS', name: WEB },
  ...given,
});

async function ask(path: string, body?: unknown): Promise<unknown> {
  const answer = await askSocket(
    lab.paths.nodedSocket,
    path,
    body === undefined ? {} : { method: 'POST', body },
  );
  return path.endsWith('/events') ? null : JSON.parse(answer.body);
}

/** Runs a job to its end. @returns its error, or null */
async function run(opcode: unknown): Promise<{ readonly code: string } | null> {
  const submitted = (await ask('/v1/jobs', opcode)) as { id?: number; code: string };
  if (submitted.id === undefined) return submitted;
  await ask(`/v1/jobs/${submitted.id}/events`);
  return jobRecord.parse(await ask(`/v1/jobs/${submitted.id}`)).error;
}
async function succeed(opcode: OpcodeInput): Promise<void> {
  assert.equal(await run(opcode), null, JSON.stringify(opcode));
}
const infoOf = async (name = WEB): Promise<InstanceInfo> =>
  instanceInfo.parse(await ask(`/v1/instances/${name}`));

async function pathsOf(name: string): Promise<readonly string[]> {
  const disks = (await ask(`/v1/instances/${name}/disks`)) as { path: string }[];
  return disks.map(({ path }) => path);
}
/** Writes at the end of a disk, as a guest would. */
async function write(name: string, disk: number, text: string): Promise<void> {
  const path = (await pathsOf(name))[disk] ?? assert.fail();
  await using file = await open(path, 'r+');
  await file.write(text, (await file.stat()).size - text.length);
}
async function read(name: string, disk: number, length: number): Promise<string> {
  const bytes = await readFile((await pathsOf(name))[disk] ?? assert.fail());
  return bytes.subarray(-length).toString('latin1');
}
/** All files of disks with their times, and all records. */
async function state(): Promise<unknown> {
  const files = await readdir(lab.paths.disksDir, { recursive: true });
  const times = files.toSorted().map(async (file) => {
    const { size, mtimeMs } = await stat(join(lab.paths.disksDir, file));
    return [file, size, mtimeMs];
  });
  const paths = ['instances', 'networks', 'profiles', 'exports', 'cluster'];
  return [await Promise.all(times), await Promise.all(paths.map((path) => ask(`/v1/${path}`)))];
}

/** Checks that operations are refused with a code, and change neither a record nor a disk. */
async function refuse(cases: readonly (readonly [string, unknown])[]): Promise<void> {
  const former = await state();
  const answers: [string | undefined, unknown][] = [];
  for (const [, opcode] of cases) answers.push([(await run(opcode))?.code, opcode]);
  assert.deepEqual(answers, cases);
  assert.deepEqual(await state(), former);
}

test('disks have their sizes, and only root may enter their folder', async () => {
  const info = await infoOf();
  assert.deepEqual(
    info.disks.map(({ name, sizeBytes }) => [name, sizeBytes]),
    [
      [null, MIB],
      ['data', 2 * MIB],
    ],
  );
  for (const [at, path] of (await pathsOf(WEB)).entries()) {
    const [file, folder] = [await stat(path), await stat(join(path, '..'))];
    assert.deepEqual(
      [file.size, file.mode & 0o777, folder.mode & 0o777],
      [(at + 1) * MIB, 0o600, 0o700],
    );
  }
  assert.deepEqual([info.adminState, info.installState], ['down', 'created']);
});

test('a creation without its parts is refused', async () => {
  const nic = { mac: MAC, mode: 'user' } as const;
  await succeed(create('taken.example.com', { nics: [nic] }));
  await refuse([
    ['INSTANCE_EXISTS', create(WEB)],
    ['CONFLICT', create('other', { nics: [nic] })],
    ['VALIDATION', create('other', { nics: [{ ...nic, mac: '53:00:00:00:00:01' }] })],
    ['NOT_FOUND', create('other', { profiles: ['nosuch'] })],
    ['BOOTENV_NOT_FOUND', create('other', { bootEnv: 'nosuch', communication: true })],
    ['NOT_FOUND', create('other', { nics: [{ networkName: 'nosuch' }] })],
    ['VALIDATION', create('other', { appliance: 'nosuch' })],
    ['OS_NOT_FOUND', { ...create('other', { osType: 'nosuch' }), osImage: undefined }],
    ['EXPORT_NOT_FOUND', { opcode: 'INSTANCE_CREATE', name: 'other', importFrom: 'nosuch' }],
    ['NODE_NOT_FOUND', create('other', { node: 'nosuch' })],
    ['VALIDATION', create('other', { disks: [{ sizeBytes: 1000 }] })],
    ['VALIDATION', create('other', { disks: [{ sizeBytes: 2 ** 60 }] })],
    ['IMAGE_NOT_FOUND', create('other', { osImage: '/nonexistent' })],
    ['PACKAGE_SOURCE', create('other', { personalizationPackage: '/nonexistent' })],
    ['NOT_SUPPORTED', create('other', { diskTemplate: 'sharedfile' })],
  ]);
});

test('settings change in place, absent ones stay, and null unsets', async () => {
  await succeed(
    modify({
      ...{ metadata: { role: 'db', zone: 'a' }, tags: ['one', 'two'], sshKeys: ['ssh-x AAAA'] },
      ...{ beparams: { memoryMiB: 256, vcpus: 2 }, hvparams: { kernel_args: 'quiet' } },
      ...{ osParameters: { color: 'red' }, osParametersPrivate: { license: 'hush' } },
      ...{ autostart: { priority: 7 }, userData: Buffer.from('#!x').toString('base64') },
    }),
  );
  await succeed(
    modify({
      ...{ metadata: { zone: null, rack: '9' }, addTags: ['three'], removeTags: ['one'] },
      ...{ beparams: { vcpus: null }, hvparams: { kernel_args: null }, autostart: { delayS: 3 } },
      ...{ osParameters: { size: 'l' } },
    }),
  );
  const info = await infoOf();
  assert.deepEqual(info.metadata, { role: 'db', rack: '9' });
  assert.deepEqual(info.tags, ['two', 'three']);
  assert.deepEqual(info.sshKeys, ['ssh-x AAAA']);
  assert.deepEqual(info.beparams, { memoryMiB: 256, vcpus: 1 });
  assert.deepEqual(info.hvparams, {});
  assert.deepEqual(info.osParameters, { color: 'red', size: 'l' });
  assert.deepEqual(info.osParametersPrivate, { license: '<redacted>' });
  assert.deepEqual([info.autostart.priority, info.autostart.delayS], [7, 3]);
  assert.equal(info.hasUserData, true);
  await succeed(modify({ userData: null, osParameters: { color: null, size: null } }));
  const later = await infoOf();
  assert.deepEqual([later.hasUserData, later.osParameters], [false, {}]);
  await refuse([
    ['INSTANCE_NOT_FOUND', { ...modify({}), name: 'nosuch' }],
    ['NOT_FOUND', modify({ profiles: ['nosuch'] })],
    ['VALIDATION', modify({ disks: [{ action: 'remove', which: 9 }] })],
    ['VALIDATION', modify({ nics: [{ action: 'modify', which: 4, changes: { ip: null } }] })],
    ['OS_NOT_FOUND', modify({ osType: 'nosuch' })],
    ['VALIDATION', modify({ appliance: 'nosuch' })],
    ['CONFLICT', modify({ instanceId: '5f8d1c2e-0b6a-4c3d-9e7f-1a2b3c4d5e6f', tags: [] })],
  ]);
});

test('files that QEMU opens must be there, be files, and be readable for its user', async () => {
  const closed = join(lab.paths.root, 'closed');
  const empty = join(lab.paths.root, 'empty');
  await writeFile(closed, 'x', { mode: 0o600 });
  await writeFile(empty, '', { mode: 0o644 });
  const unusable = [
    ...['/nonexistent', '/etc', closed].map((path) => ({ kernel_path: path })),
    { kernel_path: osImage, initrd_path: closed },
    { cdrom_image_path: '/dev/null' },
  ];
  await refuse([
    ...unusable.map((each) => ['HOST_PREREQUISITE', modify({ installParameters: each })] as const),
    ['HOST_PREREQUISITE', modify({ installParameters: { cdrom_image_path: empty } })],
    ['VALIDATION', modify({ nics: [{ action: 'add', nic: { mode: 'user', ip: 'pool' } }] })],
  ]);
  for (const each of unusable) {
    await succeed(modify({ hvparams: { kernel_path: null, initrd_path: null, ...each } }));
    await refuse([['HOST_PREREQUISITE', { opcode: 'INSTANCE_STARTUP', name: WEB }]]);
  }
  await succeed(
    modify({ hvparams: { kernel_path: null, initrd_path: null, cdrom_image_path: null } }),
  );
});

test('disks and NICs are added, changed and removed, and their addresses become free', async () => {
  const nic = { mac: '52:54:00:00:00:09', mode: 'user', name: 'first' } as const;
  await succeed(
    modify({
      disks: [
        { action: 'add', disk: { sizeBytes: 3 * MIB, name: 'more' } },
        { action: 'modify', which: 1, changes: { name: 'kept' } },
      ],
      nics: [{ action: 'add', nic }],
    }),
  );
  const added = await infoOf();
  assert.deepEqual(
    added.disks.map(({ name, sizeBytes }) => [name, sizeBytes / MIB]),
    [
      [null, 1],
      ['kept', 2],
      ['more', 3],
    ],
  );
  const [, , more = ''] = await pathsOf(WEB);
  assert.equal((await stat(more)).size, 3 * MIB);
  await refuse([['CONFLICT', create('other', { nics: [nic] })]]);
  await succeed(
    modify({
      disks: [{ action: 'remove', which: 2 }],
      nics: [{ action: 'modify', which: 0, changes: { mac: '52:54:00:00:00:0a', name: null } }],
    }),
  );
  const changed = await infoOf();
  assert.deepEqual(
    changed.nics.map(({ name, mac }) => [name, mac]),
    [[null, '52:54:00:00:00:0a']],
  );
  await assert.rejects(stat(more), { code: 'ENOENT' });
  await succeed(create('other', { nics: [nic] }));
  await succeed({ opcode: 'INSTANCE_REMOVE', name: 'other' });
  await succeed(modify({ nics: [{ action: 'remove', which: 0 }] }));
  assert.deepEqual((await infoOf()).nics, []);
});

test('a disk grows by an amount or to a size, and keeps its content', async () => {
  const grow = (given: object): OpcodeInput => ({
    ...{ opcode: 'INSTANCE_GROW_DISK', name: WEB, disk: 1, amountBytes: MIB },
    ...given,
  });
  await write(WEB, 1, 'before');
  await succeed(grow({}));
  assert.equal((await infoOf()).disks[1]?.sizeBytes, 3 * MIB);
  await succeed(grow({ amountBytes: 4 * MIB, absolute: true }));
  const [, path = ''] = await pathsOf(WEB);
  const bytes = await readFile(path);
  assert.equal(bytes.length, 4 * MIB);
  assert.equal(bytes.subarray(2 * MIB - 6, 2 * MIB).toString(), 'before');
  await refuse([
    ['VALIDATION', grow({ amountBytes: 4 * MIB, absolute: true })],
    ['VALIDATION', grow({ amountBytes: MIB, absolute: true })],
    ['VALIDATION', grow({ disk: 7 })],
    ['INSTANCE_NOT_FOUND', grow({ name: 'nosuch' })],
    ['VALIDATION', grow({ amountBytes: 2 ** 60 })],
  ]);
});

test('a snapshot restores the content of its disks, and refuses others', async () => {
  const of = (opcode: string, given: object = {}): OpcodeInput =>
    ({ opcode, name: WEB, snapshot: 's1', ...given }) as OpcodeInput;
  await write(WEB, 0, 'old');
  await succeed(of('INSTANCE_SNAPSHOT', { copy: true }));
  await write(WEB, 0, 'new');
  await succeed(modify({ disks: [{ action: 'add', disk: { sizeBytes: MIB } }] }));
  const before = await infoOf();
  assert.deepEqual(
    before.snapshots.map(({ name, wasRunning }) => [name, wasRunning]),
    [['s1', false]],
  );
  await refuse([
    ['CONFLICT', of('INSTANCE_SNAPSHOT', { copy: true })],
    ['NOT_FOUND', of('INSTANCE_RESTORE', { snapshot: 's2' })],
    ['NOT_FOUND', of('INSTANCE_REMOVE_SNAPSHOT', { snapshot: 's2' })],
    ['INSTANCE_NOT_FOUND', of('INSTANCE_RESTORE', { name: 'nosuch' })],
  ]);
  await refuse([['INSTANCE_STATE', of('INSTANCE_RESTORE')]]);
  await succeed(modify({ disks: [{ action: 'remove', which: 2 }] }));
  await succeed(of('INSTANCE_RESTORE'));
  const restored = await infoOf();
  assert.equal(await read(WEB, 0, 3), 'old');
  assert.equal(restored.disks.length, 2);
  assert.deepEqual(restored.snapshots, before.snapshots);
  await succeed(of('INSTANCE_REMOVE_SNAPSHOT'));
  assert.deepEqual((await infoOf()).snapshots, []);
  assert.equal(await read(WEB, 0, 3), 'old');
});

test('a copy has the content and the settings, and an identity of its own', async () => {
  const nics = [{ mode: 'user' }] as const;
  await succeed(modify({ nics: [{ action: 'add', nic: nics[0] }] }));
  await succeed({ opcode: 'INSTANCE_COPY', name: WEB, newName: 'copy' });
  const [first, second] = [await infoOf(), await infoOf('copy')];
  assert.equal(await read('copy', 0, 3), 'old');
  assert.deepEqual(second.metadata, first.metadata);
  assert.deepEqual(
    second.disks.map(({ sizeBytes }) => sizeBytes),
    first.disks.map(({ sizeBytes }) => sizeBytes),
  );
  for (const own of ['uuid', 'instanceId', 'channel'] as const)
    assert.notDeepEqual(second[own], first[own], own);
  assert.notEqual(second.nics[0]?.mac, first.nics[0]?.mac);
  await write('copy', 0, 'own');
  assert.equal(await read(WEB, 0, 3), 'old');
  await refuse([
    ['INSTANCE_EXISTS', { opcode: 'INSTANCE_COPY', name: WEB, newName: 'copy' }],
    ['INSTANCE_NOT_FOUND', { opcode: 'INSTANCE_COPY', name: 'nosuch', newName: 'other' }],
  ]);
});

test('an export of whole disks becomes an instance with the same content', async () => {
  await succeed({ opcode: 'BACKUP_EXPORT', name: WEB });
  // A second one takes the place of the first.
  await succeed({ opcode: 'BACKUP_EXPORT', name: WEB });
  assert.deepEqual(await readdir(lab.paths.exportDir), [WEB]);
  const imported = { opcode: 'INSTANCE_CREATE', name: 'again', importFrom: WEB } as const;
  await succeed({ ...imported, start: false });
  const [first, second] = [await infoOf(), await infoOf('again')];
  assert.equal(await read('again', 0, 3), 'old');
  assert.equal((await stat((await pathsOf('again'))[1] ?? '')).size, first.disks[1]?.sizeBytes);
  assert.deepEqual(second.metadata, first.metadata);
  assert.notEqual(second.uuid, first.uuid);
  assert.notEqual(second.nics[0]?.mac, first.nics[0]?.mac);
  await refuse([
    ['INSTANCE_EXISTS', { ...imported, start: false }],
    ['VALIDATION', { ...imported, name: 'other', profiles: ['nosuch'] }],
    ['VALIDATION', { ...imported, name: 'other', disks: [{ sizeBytes: MIB }] }],
    ['EXPORT_NOT_FOUND', { opcode: 'BACKUP_REMOVE', name: 'nosuch' }],
  ]);
  await succeed({ opcode: 'BACKUP_REMOVE', name: WEB });
  assert.deepEqual(await ask('/v1/exports'), []);
});

test('a renamed instance is found by its new name only, with its disks', async () => {
  await refuse([
    ['INSTANCE_EXISTS', { opcode: 'INSTANCE_RENAME', name: 'copy', newName: WEB }],
    ['INSTANCE_NOT_FOUND', { opcode: 'INSTANCE_RENAME', name: 'nosuch', newName: 'other' }],
  ]);
  const { uuid } = await infoOf('copy');
  await succeed({ opcode: 'INSTANCE_RENAME', name: 'copy', newName: 'moved' });
  assert.equal((await infoOf('moved')).uuid, uuid);
  assert.equal(await read('moved', 0, 3), 'own');
  await refuse([['INSTANCE_NOT_FOUND', { opcode: 'INSTANCE_REMOVE', name: 'copy' }]]);
  await succeed(create('copy'));
});

test('a removed instance leaves neither record nor disk', async () => {
  const { uuid } = await infoOf('moved');
  await succeed({ opcode: 'INSTANCE_REMOVE', name: 'moved' });
  assert.ok(!(await readdir(lab.paths.disksDir, { recursive: true })).join().includes(uuid));
  await refuse([['INSTANCE_NOT_FOUND', { opcode: 'INSTANCE_REMOVE', name: 'moved' }]]);
});

test('a stopped instance refuses what needs a running guest or another node', async () => {
  await refuse([
    ['INSTANCE_STATE', { opcode: 'INSTANCE_REBOOT', name: WEB }],
    ['INSTANCE_STATE', { opcode: 'INSTANCE_RUN_SCRIPT', name: WEB, script: 'x' }],
    ['NODE_NOT_FOUND', { opcode: 'INSTANCE_MIGRATE', name: WEB, node: 'nosuch' }],
    ['NOT_SUPPORTED', { opcode: 'INSTANCE_FAILOVER', name: WEB, node: 'node1.example.com' }],
    ['NODE_NOT_FOUND', { opcode: 'INSTANCE_MOVE', name: WEB, node: 'nosuch' }],
    ['INSTANCE_NOT_FOUND', { opcode: 'INSTANCE_ADOPT', name: 'nosuch' }],
  ]);
});

test('a profile gives values to its instances, and cannot be removed meanwhile', async () => {
  const set = { opcode: 'PROFILE_SET_PARAMS', name: 'blue', osParameters: { color: 'blue' } };
  await succeed(set as OpcodeInput);
  await succeed(modify({ profiles: ['blue'] }));
  const { color } = (await infoOf()).osParametersEffective;
  assert.deepEqual([color?.value, color?.source], ['blue', 'profile blue']);
  await refuse([
    ['CONFLICT', { opcode: 'PROFILE_REMOVE', name: 'blue' }],
    ['NOT_FOUND', { opcode: 'PROFILE_REMOVE', name: 'nosuch' }],
  ]);
  await succeed(modify({ profiles: [] }));
  await succeed({ opcode: 'PROFILE_REMOVE', name: 'blue' });
  assert.deepEqual(await ask('/v1/profiles'), []);
});

test('a network keeps its settings until they change, and is no link before its connection', async () => {
  const networkOf = async () => networkInfo.array().parse(await ask('/v1/networks'))[0];
  const name = 'lan';
  await succeed({
    ...{ opcode: 'NETWORK_ADD', name, network: '192.0.2.0/29', gateway: '192.0.2.1' },
    ...{ addReserved: ['192.0.2.2'], macPrefix: 'aa:00:01', tags: ['x'] },
  });
  await refuse([
    ['CONFLICT', { opcode: 'NETWORK_ADD', name, network: '198.51.100.0/24' }],
    ['CONFLICT', create('other', { nics: [{ networkName: name, ip: 'pool' }] })],
    ['NOT_FOUND', { opcode: 'NETWORK_REMOVE', name: 'nosuch' }],
    ['NOT_FOUND', { opcode: 'NETWORK_SET_PARAMS', name: 'nosuch', addTags: ['y'] }],
    ['NOT_FOUND', { opcode: 'NETWORK_DISCONNECT', name: 'nosuch' }],
  ]);
  await succeed({
    ...{ opcode: 'NETWORK_SET_PARAMS', name, gateway: null, macPrefix: null, addTags: ['y'] },
    ...{ addReserved: ['192.0.2.4'], removeReserved: ['192.0.2.2'], removeTags: ['x'] },
  });
  const changed = await networkOf();
  assert.deepEqual(
    [changed?.gateway, changed?.macPrefix, changed?.tags, changed?.reserved],
    [null, null, ['y'], ['192.0.2.4']],
  );
  await succeed({ opcode: 'NETWORK_REMOVE', name });
  assert.equal(await networkOf(), undefined);
});

test('settings of the cluster change in place, and wrong ones are refused', async () => {
  const set = (given: object): OpcodeInput => ({ opcode: 'CLUSTER_SET_PARAMS', ...given });
  await succeed(
    set({
      ...{ installTimeoutS: 99, hostScripts: false, defaultOs: 'hello', addTags: ['c'] },
      ...{ launchDefaults: { memoryMiB: 64, vcpus: 3 }, lowSpacePercent: 1 },
      ...{
        remoteFolders: ['/srv/x'],
        remoteHosts: ['10.0.0.1'],
        packageMirrors: { a: 'http://x/' },
      },
    }),
  );
  await succeed(set({ launchDefaults: { vcpus: null }, packageMirrors: { b: 'http://y/' } }));
  const cluster = (await ask('/v1/cluster')) as Record<string, unknown>;
  assert.deepEqual(
    [cluster['installTimeoutS'], cluster['hostScripts'], cluster['defaultOs'], cluster['tags']],
    [99, false, 'hello', ['c']],
  );
  assert.deepEqual(cluster['launchDefaults'], { memoryMiB: 64 });
  assert.deepEqual(cluster['packageMirrors'], { a: 'http://x/', b: 'http://y/' });
  assert.deepEqual(cluster['remoteFolders'], ['/srv/x']);
  await refuse([
    ['OS_NOT_FOUND', set({ defaultOs: 'nosuch' })],
    ['VALIDATION', set({ appliance: 'nosuch' })],
    ['VALIDATION', set({ imageKeys: { a: 'no key' } })],
    ['VALIDATION', set({ imageCa: 'no certificate' })],
    ['HOST_PREREQUISITE', set({ sharedFileStorageDir: '/nonexistent' })],
    ['HOST_PREREQUISITE', set({ sharedFileStorageDir: '/etc/hostname' })],
    ['HOST_PREREQUISITE', set({ vgName: 'nosuch' })],
    ['NODE_NOT_FOUND', { opcode: 'NODE_SET_PARAMS', name: 'nosuch', drained: true }],
  ]);
});

test('the doctor judges this node, and names disks that belong to no instance', async () => {
  const judge = async (): Promise<ReadonlyMap<string, DoctorReport['findings'][number]>> => {
    const report = doctorReport.parse(await ask('/v1/doctor'));
    return new Map(report.findings.map((finding) => [finding.check, finding]));
  };
  const healthy = await judge();
  const ok = ['packages', 'namespace', 'nftables', 'metad', 'orphans', 'membership', 'store'];
  const records = ['records', 'cluster-key', 'lost-secrets', 'machine-users', 'orphaned-disks'];
  for (const check of [...ok, ...records]) assert.equal(healthy.get(check)?.level, 'ok', check);
  // Their levels depend on this host.
  const others = [
    'kvm',
    'tun',
    'disk',
    'firmware',
    'link-local',
    'swap',
    'core-dumps',
    'appliance',
  ];
  for (const check of [...others, 'user-nics', 'paused', 'disk-overcommit', 'store-risks'])
    assert.ok(healthy.has(check), check);
  const [left, copied, orphaned] = [randomUUID(), randomUUID(), randomUUID()];
  const { uuid } = await infoOf();
  for (const folder of [`leaving-${left}`, `copying-${uuid}`, `copying-${copied}`, orphaned])
    await mkdir(join(lab.paths.disksDir, folder));
  const found = await judge();
  const told = [...found.values()]
    .filter(({ check, level }) => level !== healthy.get(check)?.level)
    .map(({ message }) => message)
    .join('\n');
  for (const expected of [`leaving-${left} (no record)`, `copying-${copied} (no record)`])
    assert.ok(told.includes(expected), told);
  assert.ok(told.includes(`copying-${uuid} (${WEB} of node1.example.com)`), told);
  assert.ok(told.includes(orphaned), told);
});

test('a drained node takes no new instance', async () => {
  const drain = (drained: boolean): OpcodeInput => ({
    opcode: 'NODE_SET_PARAMS',
    name: 'node1.example.com',
    drained,
  });
  await succeed(drain(true));
  await refuse([['NODE_DRAINED', create('other')]]);
  await succeed(drain(false));
  await succeed(create('other'));
});
