import assert from 'node:assert/strict';
import { test } from 'node:test';
import { opcode, type Opcode } from '#shared/contract/opcode.ts';
import {
  parseCreate,
  parseExport,
  parseFailover,
  parseGrow,
  parseMigrate,
  parseModify,
  parseReboot,
  parseReinstall,
} from '../../../../noded/api/rapi/instance-requests.ts';

const smallest = {
  ...{ __version__: 1, mode: 'create', name: 'web1', disk_template: 'file' },
  ...{ disks: [{ size: 1024 }], nics: [] },
};

/** Parses a request into an opcode that can be submitted. */
function create(more: object): Extract<Opcode, { opcode: 'INSTANCE_CREATE' }> {
  const parsed = opcode.parse(parseCreate({ ...smallest, ...more }));
  assert.ok(parsed.opcode === 'INSTANCE_CREATE');
  return parsed;
}

test('sizes are MiB, names are old or new, NICs have bridges or links', () => {
  const parsed = create({
    os: 'debian+bookworm',
    disks: [{ size: 1024, mode: 'rw', name: 'root' }, { size: 10 }],
    nics: [
      { bridge: 'br1', mac: 'generate' },
      { link: 'br2', mode: 'bridged', ip: null },
    ],
    beparams: { maxmem: 256, minmem: 128, vcpus: 2, auto_balance: true },
    ...{ ip_check: false, name_check: false, wait_for_sync: true, hypervisor: 'kvm', pnode: null },
  });
  assert.equal(parsed.osType, 'debian+bookworm');
  assert.deepEqual(
    parsed.disks.map(({ sizeBytes }) => sizeBytes),
    [1024 ** 3, 10 * 1024 ** 2],
  );
  assert.deepEqual(
    parsed.nics.map(({ link, mac }) => [link, mac]),
    [
      ['br1', 'auto'],
      ['br2', 'auto'],
    ],
  );
  assert.deepEqual(parsed.beparams, { memoryMiB: 256, vcpus: 2 });
  const { name, ...rest } = smallest;
  const renamed = opcode.parse(parseCreate({ ...rest, instance_name: name }));
  assert.equal('name' in renamed && renamed.name, 'web1');
});

test('the OS parameter os-image is the image, as in Ganeti, and documents are taken as text', () => {
  const parsed = create({
    osparams: { 'os-image': 'https://example.com/debian.qcow2', size: 3 },
    user_data: '#cloud-config\n',
    instance_communication: true,
  });
  assert.equal(parsed.osImage, 'https://example.com/debian.qcow2');
  assert.deepEqual(parsed.osParameters, { size: '3' });
  assert.equal(parsed.userData, Buffer.from('#cloud-config\n').toString('base64'));
  assert.equal(parsed.communication, true);
});

test('what would not be done is refused by name, not left out', () => {
  const refused: readonly (readonly [object, RegExp])[] = [
    [{ mode: 'import' }, /mode/],
    [{ __version__: 0 }, /version/],
    [{ snode: 'node2' }, /snode/],
    [{ iallocator: 'dumb' }, /iallocator: expected 'hail'/],
    [{ group_name: 'other' }, /group_name/],
    [{ src_path: '/x' }, /src_path: import an export on its node/],
    [{ beparams: { memory: '1Q' } }, /beparams\.memory: expected MiB or a size/],
    [{ nics: [{ vlan: '7' }] }, /vlan/],
    [{ hypervisor: 'xen-pvm' }, /hypervisor/],
    [{ disks: [{ adopt: 'lv1' }] }, /disks\.0/],
    [{ name: 'web1', instance_name: 'web1' }, /same parameter/],
    [{ dry_run: true }, /dry_run/],
    [{ disk_template: 'drbd' }, /diskTemplate/],
    [{ osparams: { ['__proto__.x']: {} } }, /osparams/],
  ];
  for (const [more, pattern] of refused) assert.throws(() => create(more), pattern);
});

test('a reinstallation stops the instance first', () => {
  const parsed = opcode.parse(parseReinstall('web1', { osparams_secret: { password: 'x' } }));
  assert.equal(parsed.opcode, 'INSTANCE_REINSTALL');
  assert.ok('shutdownTimeoutS' in parsed && parsed.shutdownTimeoutS === 120);
  assert.deepEqual('osParametersSecret' in parsed && parsed.osParametersSecret, { password: 'x' });
  assert.equal(opcode.parse(parseReinstall('web1', undefined)).opcode, 'INSTANCE_REINSTALL');
});

test('a modification changes only the given parameters', () => {
  const parsed = opcode.parse(
    parseModify('web1', { custom_beparams: { memory: 64 }, nics: [], osparams: { a: null } }),
  );
  assert.ok(parsed.opcode === 'INSTANCE_SET_PARAMS');
  const { memoryMiB, vcpus } = parsed.beparams;
  assert.deepEqual([memoryMiB, vcpus], [64, undefined]);
  assert.deepEqual(parsed.osParameters, { a: null });
  assert.deepEqual([parsed.nics, parsed.disks], [[], []]);
});

test("changes of disks and NICs are Ganeti's, with or without the number of the part", () => {
  const nic = { link: 'br1', ip: '10.0.0.2/24' };
  const parsed = opcode.parse(
    parseModify('web1', {
      disks: [
        ['add', { size: '1G' }],
        ['add', -1, { size: 10, mode: 'rw' }],
        ['remove', {}],
        ['modify', 0, { name: 'root' }],
      ],
      nics: [
        ['add', 0, { ...nic, mac: 'generate', network: null }],
        [1, { bridge: 'br2', ip: null, vlan: '' }],
        ['remove', 'lan', {}],
      ],
    }),
  );
  assert.ok(parsed.opcode === 'INSTANCE_SET_PARAMS');
  assert.deepEqual(parsed.disks, [
    { action: 'add', disk: { sizeBytes: 1024 ** 3, name: undefined } },
    { action: 'add', disk: { sizeBytes: 10 * 1024 ** 2, name: undefined } },
    { action: 'remove', which: -1 },
    { action: 'modify', which: 0, changes: { name: 'root' } },
  ]);
  const [added, ...others] = parsed.nics;
  assert.ok(added?.action === 'add');
  assert.deepEqual([added.at, added.nic.link, added.nic.ip], [0, 'br1', '10.0.0.2']);
  assert.deepEqual(added.nic.network?.addresses, ['10.0.0.2/24']);
  assert.deepEqual(others, [
    { action: 'modify', which: 1, changes: { link: 'br2', ip: null, network: { addresses: [] } } },
    { action: 'remove', which: 'lan' },
  ]);
});

test('a change of a disk or NIC that would not be done is refused by name', () => {
  const refused: readonly (readonly [object, RegExp])[] = [
    [{ disks: [['add', -1, {}]] }, /disks\.0\.values\.size/],
    [{ disks: [['modify', 0, { size: 10 }]] }, /disks\.0\.values: only the name/],
    [{ disks: [['attach', 0, {}]] }, /disks\.0\.action/],
    [{ disks: [['remove', 0, { keep: true }]] }, /a removal takes no parameters/],
    [{ nics: [['add', -1, { vlan: '7' }]] }, /nics\.0\.values\.vlan: VLANs/],
    [{ nics: ['add'] }, /nics\.0/],
    [{ pnode: 'node2' }, /pnode: move the instance/],
    [{ runtime_mem: 64 }, /runtime_mem/],
  ];
  for (const [body, pattern] of refused)
    assert.throws(() => opcode.parse(parseModify('web1', body)), pattern);
});

test('sizes with units are taken, as in Ganeti', () => {
  const parsed = create({ disks: [{ size: '20G' }], beparams: { memory: '2G' } });
  assert.equal(parsed.disks[0]?.sizeBytes, 20 * 1024 ** 3);
  assert.equal(parsed.beparams.memoryMiB, 2048);
});

test("Ganeti's default kind of reboot is a hard one", () => {
  const parsed = opcode.parse(parseReboot('web1', null, {}));
  assert.ok(parsed.opcode === 'INSTANCE_REBOOT');
  assert.equal(parsed.kind, 'hard');
  assert.throws(() => opcode.parse(parseReboot('web1', 'kind', {})));
});

test('a disk grows by MiB, or to so many, and is named by its number', () => {
  const parsed = opcode.parse(parseGrow('web1', '1', { amount: 512, absolute: true }));
  assert.deepEqual(parsed, {
    ...{ opcode: 'INSTANCE_GROW_DISK', name: 'web1', disk: 1 },
    ...{ amountBytes: 512 * 1024 ** 2, absolute: true },
  });
  assert.throws(() => parseGrow('web1', 'root', { amount: 512 }), /Invalid disk identifier 'root'/);
  assert.throws(() => parseGrow('web1', '0', { amount: -1 }), /amount/);
});

const web1 = { name: 'web1', primaryNode: 'node1' };
const exportOf = (_: string, body: object) => parseExport(web1, body);

test('a migration, a failover and an export become opcodes', () => {
  assert.deepEqual(parseMigrate('web1', { mode: 'live', target_node: 'node2' }), {
    opcode: 'INSTANCE_MIGRATE',
    name: 'web1',
    node: 'node2',
    cleanup: undefined,
  });
  assert.equal(parseMigrate('web1', { cleanup: true })['cleanup'], true);
  assert.equal(parseMigrate('web1', { cleanup: false })['cleanup'], undefined);
  assert.deepEqual(parseFailover('web1', { ignore_consistency: true }), {
    opcode: 'INSTANCE_FAILOVER',
    name: 'web1',
    node: undefined,
  });
  assert.deepEqual(parseExport(web1, { mode: 'local', destination: 'node1', shutdown: true }), {
    opcode: 'BACKUP_EXPORT',
    name: 'web1',
    shutdownTimeoutS: undefined,
  });
});

for (const [name, parse, body] of [
  ['a migration with downtime', parseMigrate, { mode: 'non-live' }],
  ['a migration that may fail over', parseMigrate, { allow_failover: true }],
  ['an export to another cluster', exportOf, { mode: 'remote' }],
  ['an export to another node', exportOf, { destination: 'node2' }],
  ['an export of a running instance', exportOf, { shutdown: false }],
  ['an export that removes the instance', exportOf, { remove_instance: true }],
] as const)
  test(`${name} is refused`, () => {
    assert.throws(() => parse('web1', body), { code: 'VALIDATION' });
  });

test('a list is no body of a request, even an empty list', () => {
  const own = { name: 'web1', primaryNode: 'node1' };
  for (const parse of [
    () => parseReinstall('web1', []),
    () => parseModify('web1', []),
    () => parseExport(own, []),
    () => parseCreate([]),
  ])
    assert.throws(parse, { code: 'VALIDATION' });
});

test('a refused target node is called a node', () => {
  const parsed = opcode.safeParse(parseMigrate('web1', { target_node: '-x' }));
  assert.match(parsed.error?.message ?? '', /not a valid node name.*node1\.example\.com/);
});
