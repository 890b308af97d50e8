import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { execFile } from 'node:child_process';
import { opcode as opcodeSchema, type Opcode, type OpcodeInput } from '#shared/contract/opcode.ts';
import { commandOf, type KnownOpcode } from '../../../web/commands/command-of.ts';
import {
  type DaemonStandIn,
  startDaemonStandIn,
} from '../../cluster-cli/support/daemon-stand-in.ts';
import { runInProcess } from '../../cluster-cli/support/run-in-process.ts';
import { sampleInstance } from '../../cluster-cli/support/samples.ts';
import { fc } from '../../lab/fast-check.ts';

let daemon: DaemonStandIn;
let folder: string;

before(async () => {
  daemon = await startDaemonStandIn();
  folder = await mkdtemp(join(tmpdir(), 'gnt-web-commands-'));
  daemon.instances.push(sampleInstance({ name: 'web1' }));
});
after(async () => {
  await daemon.close();
  await rm(folder, { recursive: true });
});

/** Returns the operation that the command line submits for the command of an operation. */
async function submitCommandOf(opcode: KnownOpcode): Promise<Opcode> {
  const { text, files, missing } = commandOf(opcode);
  assert.deepEqual(missing, []);
  for (const { name, content } of files) await writeFile(join(folder, name), content);
  const [program = '', ...args] = await wordsOf(text);
  const known = new Set(files.map(({ name }) => name));
  // The command of the page names files of the working directory.
  const here = args.map((arg) => {
    if (known.has(arg)) return join(folder, arg);
    return arg.replace(/(^|=)@([^,]+)/g, (whole, before: string, name: string) =>
      known.has(name) ? `${before}@${join(folder, name)}` : whole,
    );
  });
  daemon.submitted.length = 0;
  const { status, stderr } = await runInProcess(program, here, { root: daemon.root });
  assert.equal(status, 0, `${text}\n${stderr}`);
  const [submitted] = daemon.submitted;
  assert.ok(submitted, text);
  return submitted;
}

/** Returns the words of a command as the shell reads them. */
async function wordsOf(text: string): Promise<readonly string[]> {
  const { stdout } = await promisify(execFile)('sh', ['-c', `printf '%s\\0' ${text}`]);
  return stdout.split('\0').slice(0, -1);
}

async function assertSame(opcode: OpcodeInput): Promise<void> {
  const expected = opcodeSchema.parse(opcode);
  // The page's type of an operation is made from the same schema.
  assert.deepEqual(await submitCommandOf(opcode as KnownOpcode), expected);
}

/** Texts with the characters that shells and lists treat specially. */
const hardText = fc.oneof(
  fc
    .string({ unit: 'grapheme', maxLength: 12 })
    .filter((text) => !/[\0\r\n\ud800-\udfff]/.test(text)),
  fc.constantFrom(
    'none',
    'default',
    '@x',
    '-x',
    "it's",
    'a,b\\c',
    '$HOME `id`',
    ' "x" ',
    '\\',
    '=',
  ),
);
const parameterName = fc
  .stringMatching(/^[a-z][a-z0-9_]{0,6}$/)
  .filter((name) => !name.startsWith('no_'));
const disjointParameters = fc
  .uniqueArray(fc.tuple(parameterName, hardText, fc.nat(2)), {
    selector: ([name]) => name,
    maxLength: 6,
  })
  .map((all) => {
    const of = (place: number): Record<string, string> =>
      Object.fromEntries(all.flatMap(([name, text, at]) => (at === place ? [[name, text]] : [])));
    return { osParameters: of(0), osParametersPrivate: of(1), osParametersSecret: of(2) };
  });
const base64 = fc
  .uint8Array({ minLength: 1, maxLength: 40 })
  .map((bytes) => Buffer.from(bytes).toString('base64'));
const size = fc.integer({ min: 16, max: 5000 }).map((mib) => mib * 1024 * 1024);
type Nic = NonNullable<Extract<OpcodeInput, { opcode: 'INSTANCE_CREATE' }>['nics']>[number];
const nic: fc.Arbitrary<Nic> = fc.oneof(
  fc.record(
    { mode: fc.constant('user' as const), reach: fc.constant('public' as const) },
    { requiredKeys: ['mode'] },
  ),
  fc.constant<Nic>({ link: 'br7', mac: '52:54:00:aa:bb:cc' }),
  fc.constant<Nic>({ networkName: 'lan', ip: 'pool' }),
  fc.constant<Nic>({}),
  fc.constant<Nic>({
    ip: '10.0.0.5',
    network: {
      addresses: ['10.0.0.5/24', 'fd00::5/64'],
      gateways: ['10.0.0.1'],
      nameservers: ['9.9.9.9'],
      search: ['example.com'],
      routes: [{ to: '10.1.0.0/16', via: '10.0.0.1' }],
      mtu: 1400,
    },
  }),
);
const installation = fc.record(
  {
    osType: fc.constantFrom('debootstrap', 'debootstrap+default'),
    osImageGrow: fc.boolean(),
    osImageFormat: fc.constantFrom('auto' as const, 'qcow2' as const),
    personalizationPackage: fc.constantFrom('https://example.com/a.tar.gz', '/srv/it is.tgz'),
    safeInstall: fc.boolean(),
    hooks: fc.uniqueArray(
      fc.record({ name: fc.constantFrom('a.yaml', 'b c.yaml'), content: base64 }),
      { selector: ({ name }) => name, minLength: 1 },
    ),
    profiles: fc.uniqueArray(fc.constantFrom('base', 'web'), { minLength: 1 }),
    bootEnv: fc.constant('debian-12'),
    installTimeoutS: fc.nat(9000),
    start: fc.boolean(),
    mediumSuccess: fc.constant('poweroff' as const),
  },
  { requiredKeys: [] },
);
const creation = fc
  .tuple(
    disjointParameters,
    installation,
    fc.record(
      {
        communication: fc.boolean(),
        userData: base64,
        sshKeys: fc.constant<string[]>(['ssh-ed25519 AAAA me@host', 'ssh-rsa AAAAB "two words"']),
        tags: fc.uniqueArray(fc.constantFrom('web', 'rs_agent:type=right_link_lite'), {
          minLength: 1,
        }),
        diskTemplate: fc.constantFrom('file' as const, 'plain' as const),
        disks: fc.array(
          fc.record(
            { sizeBytes: size, name: fc.constantFrom('root', 'data disk') },
            { requiredKeys: ['sizeBytes'] },
          ),
          { maxLength: 3 },
        ),
        nics: fc.array(nic, { maxLength: 3 }),
        beparams: fc.record(
          {
            memoryMiB: fc.integer({ min: 16, max: 9000 }),
            vcpus: fc.integer({ min: 1, max: 255 }),
          },
          { requiredKeys: [] },
        ),
        hvparams: fc.record(
          {
            firmware: fc.constant('uefi' as const),
            kernel_args: hardText.filter((text) => text !== ''),
          },
          { requiredKeys: [] },
        ),
        node: fc.constant('node1'),
        autostart: fc.constant({ boot: false, priority: 5, lostSecrets: 'wait' as const }),
        onFailure: fc.constant('remove' as const),
        seedDisk: fc.boolean(),
        dialects: fc.constant<('ec2' | 'nocloud')[]>(['ec2']),
        metadataToken: fc.constant('required' as const),
      },
      { requiredKeys: [] },
    ),
  )
  .map((parts) => Object.assign({ opcode: 'INSTANCE_CREATE' as const, name: 'web2' }, ...parts));

test('the command of a creation submits the same creation', async () => {
  await fc.assert(fc.asyncProperty(creation, assertSame), { numRuns: 60 });
});

test('the command of a reinstallation submits the same reinstallation', async () => {
  const reinstallation = fc
    .tuple(
      disjointParameters,
      installation,
      fc.record(
        { keepOld: fc.boolean(), shutdownTimeoutS: fc.nat(600), osImage: fc.constant(null) },
        { requiredKeys: [] },
      ),
    )
    .map((parts) =>
      Object.assign({ opcode: 'INSTANCE_REINSTALL' as const, name: 'web1' }, ...parts),
    );
  await fc.assert(fc.asyncProperty(reinstallation, assertSame), { numRuns: 40 });
});

const others: readonly OpcodeInput[] = [
  { opcode: 'INSTANCE_STARTUP', name: 'web1', osParametersSecret: { password: 'a,b' } },
  { opcode: 'INSTANCE_SHUTDOWN', name: 'web1', timeoutS: 5 },
  { opcode: 'INSTANCE_REBOOT', name: 'web1', kind: 'hard' },
  { opcode: 'INSTANCE_RENAME', name: 'web1', newName: 'web3' },
  { opcode: 'INSTANCE_COPY', name: 'web1', newName: 'web3' },
  { opcode: 'INSTANCE_GROW_DISK', name: 'web1', disk: 0, amountBytes: 2 ** 30 },
  { opcode: 'INSTANCE_GROW_DISK', name: 'web1', disk: 0, amountBytes: 2 ** 20, absolute: true },
  { opcode: 'INSTANCE_SNAPSHOT', name: 'web1', snapshot: 'before', copy: true },
  { opcode: 'INSTANCE_SNAPSHOT', name: 'web1', snapshot: 'before' },
  { opcode: 'INSTANCE_MOVE', name: 'web1', node: 'node2' },
  { opcode: 'INSTANCE_MIGRATE', name: 'web1' },
  { opcode: 'OS_SET_PARAMS', name: 'debootstrap', trusted: true },
  { opcode: 'OS_SET_PARAMS', name: 'debootstrap', hidden: false, blacklisted: true },
  {
    opcode: 'PROFILE_SET_PARAMS',
    name: 'base',
    osParameters: { a: 'x,y', b: null },
    osParametersPrivate: { c: 'p' },
  },
  { opcode: 'PROFILE_REMOVE', name: 'base' },
  {
    opcode: 'NETWORK_ADD',
    name: 'lan',
    network: '10.9.0.0/24',
    gateway: '10.9.0.1',
    addReserved: ['10.9.0.2'],
    tags: ['a'],
  },
  { opcode: 'NETWORK_CONNECT', name: 'lan', connection: { mode: 'nat' } },
  {
    opcode: 'NETWORK_CONNECT',
    name: 'lan',
    nodes: ['node1'],
    connection: { mode: 'bridged', link: 'br0' },
  },
  { opcode: 'NETWORK_DISCONNECT', name: 'lan', nodes: ['node1'] },
  { opcode: 'NETWORK_REMOVE', name: 'lan' },
  { opcode: 'BOOTENV_REMOVE', object: { kind: 'bootEnv', name: 'debian-12' } },
  { opcode: 'BOOTENV_REMOVE', object: { kind: 'template', name: 'grub.tmpl' } },
  { opcode: 'BOOTENV_UPLOAD_ISO', bootEnv: 'debian-12', source: 'https://example.com/a.iso' },
  { opcode: 'BOOTENV_DESTROY_ISO', isoFile: 'debian.iso' },
  { opcode: 'NODE_SET_PARAMS', name: 'node1', drained: true },
  { opcode: 'NODE_SET_PARAMS', name: 'node1', offline: false },
];

for (const [index, opcode] of others.entries()) {
  test(`the command of ${opcode.opcode} submits the same operation (${index})`, () =>
    assertSame(opcode));
}

test('private and secret values are in files and not in the command', () => {
  const { text, files } = commandOf({
    opcode: 'INSTANCE_CREATE',
    name: 'web2',
    osParametersPrivate: { token: 'hidden-private' },
    osParametersSecret: { 'db/token': 'hidden-secret' },
    personalizationUser: 'me',
    personalizationPassword: 'hidden-password',
  });
  assert.doesNotMatch(text, /hidden/);
  assert.deepEqual(
    files.map(({ name }) => name),
    ['token.txt', 'db-token.txt', 'package-password.txt'],
  );
});
