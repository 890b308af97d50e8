import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ClusterRecord } from '#shared/contract/api.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import type { OpcodeOf } from '#shared/contract/opcode.ts';
import { MAX_MIRRORS } from '#shared/contract/primitives.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { JobContext } from '../../../noded/jobs/job-handler.ts';
import { modifyClusterHandler } from '../../../noded/operations/change-cluster.ts';
import type { OperationDependencies } from '../../../noded/operations/operation-dependencies.ts';
import { parseOpcode } from '../support/opcodes.ts';
import { clusterRecord, instanceRecord } from '../support/records.ts';

type Changes = Partial<Omit<OpcodeOf<'CLUSTER_SET_PARAMS'>, 'opcode'>>;

interface World {
  readonly cluster?: Partial<ClusterRecord>;
  readonly instances?: readonly InstanceRecord[];
  readonly os?: 'here' | 'elsewhere' | 'nowhere';
  readonly isBlacklisted?: boolean;
}

async function run(
  changes: Changes,
  { cluster, instances = [], os = 'here', isBlacklisted = false }: World = {},
) {
  let record: ClusterRecord = { ...clusterRecord, ...cluster };
  const calls: string[] = [];
  const dependencies = {
    clusters: {
      load: async () => record,
      loadOs: async (name: string) => ({ name, trusted: false, blacklisted: isBlacklisted }),
      loadNetwork: async (name: string) => {
        if (name !== 'lan') throw new AppError('NOT_FOUND', `no network ${name}`);
      },
      ensureIdentityKeys: async () => void calls.push('keys'),
      update: async (change: (former: ClusterRecord) => ClusterRecord) => {
        record = change(record);
      },
    },
    instances: { list: async () => instances },
    osRegistry: {
      find: async (name: string) => {
        if (os !== 'here') throw new AppError('OS_NOT_FOUND', `no OS ${name}`);
        return { definition: { name, path: '/os' } };
      },
    },
    findElsewhere: async () => (os === 'elsewhere' ? { node: 'node2', digest: 'd' } : null),
    applianceFiles: {
      verify: async (name: string) => {
        if (name !== 'mine') throw new AppError('NOT_FOUND', `no appliance ${name}`);
      },
    },
    services: { publish: async () => void calls.push('publish') },
  } as unknown as OperationDependencies;
  const opcode = parseOpcode({ opcode: 'CLUSTER_SET_PARAMS', ...changes } as never);
  assert.ok(opcode.opcode === 'CLUSTER_SET_PARAMS');
  const { signal } = new AbortController();
  const execute = await modifyClusterHandler(dependencies).prepare(opcode, signal);
  assert.deepEqual(await execute({} as JobContext), {});
  return { record, calls };
}

/** A cluster in which each setting has a value. */
const FULL = {
  ...{ installTimeoutS: 60, hostScripts: false, appliance: 'mine', defaultOs: 'debian' },
  ...{ imageCa: 'pem', maxImageBytes: 1, downloadTimeoutS: 2, minDownloadRate: 3 },
  dataRate: 2 ** 20,
  ...{ lowSpacePercent: 4, sharedFileStorageDir: '/srv/shared', vgName: 'xenvg', zfsPool: 'tank' },
  ...{ remoteFolders: ['/srv/a'], remoteHosts: ['a.example'], confineGuests: true },
  guestNetworks: ['10.0.0.0/8'],
  launchDefaults: { diskBytes: 2 ** 30, memoryMiB: 512, vcpus: 2, net: 'link=br0' },
  packageMirrors: { debian: 'http://a.example/' },
  tags: ['a', 'b'],
} as unknown as ClusterRecord;

test('a change without values leaves each setting', async () => {
  const { record, calls } = await run({}, { cluster: FULL });
  assert.deepEqual(record, { ...clusterRecord, ...FULL, imageKeys: {} });
  assert.deepEqual(calls, []);
});

test('a change without values sets nothing in a new cluster', async () => {
  const { record } = await run({});
  const unset = { packageMirrors: {}, imageKeys: {}, tags: [] };
  assert.deepEqual(record, { ...clusterRecord, ...unset });
});

for (const [changes, expected] of [
  [{ installTimeoutS: 0 }, { installTimeoutS: 0 }],
  [{ hostScripts: true }, { hostScripts: true }],
  [{ appliance: null }, { appliance: undefined }],
  [{ appliance: 'mine' }, { appliance: 'mine' }],
  [{ defaultOs: null }, { defaultOs: undefined }],
  [{ defaultOs: 'ubuntu' }, { defaultOs: 'ubuntu' }],
  [{ imageCa: null }, { imageCa: undefined }],
  [{ maxImageBytes: 9 }, { maxImageBytes: 9 }],
  [{ downloadTimeoutS: 0 }, { downloadTimeoutS: 0 }],
  [{ minDownloadRate: 0 }, { minDownloadRate: 0 }],
  [{ lowSpacePercent: 0 }, { lowSpacePercent: 0 }],
  [{ dataRate: 0 }, { dataRate: 0 }],
  [{ sharedFileStorageDir: null }, { sharedFileStorageDir: undefined }],
  [{ vgName: null }, { vgName: undefined }],
  [{ zfsPool: null }, { zfsPool: undefined }],
  [{ remoteFolders: [] }, { remoteFolders: [] }],
  [{ remoteHosts: [] }, { remoteHosts: [] }],
  [{ confineGuests: false }, { confineGuests: false }],
  [{ guestNetworks: [] }, { guestNetworks: [] }],
  [
    { launchDefaults: { memoryMiB: 1024, net: null } },
    { launchDefaults: { diskBytes: 2 ** 30, memoryMiB: 1024, vcpus: 2 } },
  ],
  [
    { launchDefaults: { diskBytes: null, memoryMiB: null, vcpus: null, net: 'network=lan' } },
    { launchDefaults: { net: 'network=lan' } },
  ],
  [
    { packageMirrors: { debian: null, ubuntu: 'http://b.example/' } },
    { packageMirrors: { ubuntu: 'http://b.example/' } },
  ],
  [{ addTags: ['c', 'a'], removeTags: ['b'] }, { tags: ['a', 'c'] }],
] as const) {
  test(`only the given setting changes: ${JSON.stringify(changes)}`, async () => {
    const { record } = await run(changes as unknown as Changes, { cluster: FULL });
    assert.deepEqual(record, { ...clusterRecord, ...FULL, imageKeys: {}, ...expected });
  });
}

test('keys are made before an identity policy is set, and not without one', async () => {
  const calls = async (policy: string | undefined): Promise<readonly string[]> =>
    (await run({ identity: policy === undefined ? {} : { policy } } as never)).calls;
  assert.deepEqual(await calls('yes'), ['keys']);
  assert.deepEqual(await calls('no'), []);
  assert.deepEqual(await calls(undefined), []);
});

test('changed services are published', async () => {
  const { calls } = await run({ exposeServices: { web: null } });
  assert.deepEqual(calls, ['publish']);
});

const mirrors = (count: number): Record<string, string> =>
  Object.fromEntries(Array.from({ length: count }, (_, n) => [`m${n}`, 'http://a.example/']));
const onShared = (name: string): InstanceRecord =>
  instanceRecord({ name }, { diskTemplate: 'sharedfile' });
const SHARED = { sharedFileStorageDir: '/srv/shared' };
const PEM = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n';
const KEY = '-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n';

test('the limit of mirrors, an OS of another node and disks in files are accepted', async () => {
  await run({ packageMirrors: mirrors(MAX_MIRRORS) });
  await run({ defaultOs: 'debian' }, { os: 'elsewhere' });
  await run({ launchDefaults: { net: '0,network=lan,ip=pool' } });
  const instances = [instanceRecord()];
  await run({ sharedFileStorageDir: null }, { cluster: SHARED, instances });
  await run({ sharedFileStorageDir: null }, { instances: [onShared('a')] });
});

for (const [what, changes, world, code, message] of [
  [
    'one mirror too many',
    { packageMirrors: mirrors(1) },
    { cluster: { packageMirrors: { ...mirrors(MAX_MIRRORS + 1), m0: 'http://b.example/' } } },
    ...(['VALIDATION', /more than 16 package mirrors/] as const),
  ],
  ['an unknown appliance', { appliance: 'other' }, {}, 'VALIDATION', /appliance 'other' cannot/],
  ['an OS of no node', { defaultOs: 'debian' }, { os: 'nowhere' }, 'OS_NOT_FOUND', /debian/],
  [
    'a blacklisted OS',
    { defaultOs: 'debian' },
    { isBlacklisted: true },
    ...(['OS_BLACKLISTED', /not allowed/] as const),
  ],
  [
    'an unknown default network',
    { launchDefaults: { net: 'network=wan,ip=pool' } },
    {},
    ...(['NOT_FOUND', /no network wan$/] as const),
  ],
  [
    'another shared folder under disks',
    { sharedFileStorageDir: null },
    { cluster: SHARED, instances: [onShared('a'), onShared('b')] },
    ...(['CONFLICT', /^2 instance\(s\) have disks in \/srv\/shared/] as const),
  ],
  ['no certificate', { imageCa: 'text' }, {}, 'VALIDATION', /expected certificates in PEM/],
  ['a private key', { imageCa: PEM + KEY }, {}, 'VALIDATION', /expected certificates in PEM/],
  ['a broken certificate', { imageCa: PEM }, {}, 'VALIDATION', /certificate 1 cannot be parsed/],
] as const) {
  test(`the cluster is refused ${what}`, async () => {
    await assert.rejects(run(changes, world), { code, message });
  });
}
