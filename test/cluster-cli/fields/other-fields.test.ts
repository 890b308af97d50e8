import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  bootArchiveFields,
  bootEnvFields,
  jobFields,
  networkFields,
  nodeFields,
  osFields,
  profileFields,
  snapshotFields,
} from '../../../cluster-cli/fields/other-fields.ts';
import { NOW_MS, sampleJob } from '../../lab/sample-job.ts';
import { describeFields as describe } from '../support/describe-fields.ts';
import { sampleNode, sampleOs } from '../support/samples.ts';

test('nodes have these columns, and a node that does not answer has few values', () => {
  assert.deepEqual(describe(nodeFields, sampleNode()), [
    '* name Node text "node1"',
    '* dfree DFree size 102400',
    '* mtotal MTotal size 8192',
    '* mfree MFree size 4096',
    '  ctotal CTotal number 4',
    '* pinst_cnt Pinst number 1',
    '* running_cnt Running number 1',
    '* appliance Appliance text "intact"',
    '* state State text "up"',
    '  role Role text "M"',
    '  drained Drained boolean false',
    '  offline Offline boolean false',
    '  version Version text "0.1.0"',
    '  root Root text "/"',
    '  pid PID number 100',
    '  netns Netns text "gnt-com"',
    '  metad_pid Metad number 101',
    '  metad_restarts Restarts number 0',
    '  stime STime time 1795248000000',
  ]);
  const { name, flags, instances } = sampleNode();
  const silent = { name, flags, instances, silent: 'gone' as const };
  assert.deepEqual(describe(nodeFields, silent), [
    '* name Node text "node1"',
    '* dfree DFree size null',
    '* mtotal MTotal size null',
    '* mfree MFree size null',
    '  ctotal CTotal number null',
    '* pinst_cnt Pinst number 1',
    '* running_cnt Running number null',
    '* appliance Appliance text null',
    '* state State text "silent"',
    '  role Role text "M"',
    '  drained Drained boolean false',
    '  offline Offline boolean false',
    '  version Version text null',
    '  root Root text null',
    '  pid PID number null',
    '  netns Netns text null',
    '  metad_pid Metad number null',
    '  metad_restarts Restarts number null',
    '  stime STime time null',
  ]);
});

for (const [flags, state, role] of [
  [{ drained: false, offline: false }, 'up', 'M'],
  [{ drained: true, offline: false }, 'drained', 'D'],
  [{ drained: false, offline: true }, 'offline', 'O'],
  [{ drained: true, offline: true }, 'offline', 'O'],
] as const)
  test(`the state of a node is ${state} for ${JSON.stringify(flags)}`, () => {
    const node = { ...sampleNode(), flags };
    const valueOf = (name: string) => nodeFields.fields.find((f) => f.name === name)?.get(node);
    assert.deepEqual([valueOf('state'), valueOf('role')], [state, role]);
  });

test('jobs have these columns', () => {
  const job = sampleJob({
    id: 12,
    node: 'node1',
    waitsFor: [10, 11],
    waitsBecause: 'a slot',
    endedAtMs: NOW_MS + 2000,
    startedAtMs: NOW_MS + 1000,
    error: { code: 'CONFLICT', message: 'it failed', stage: 'create-disks' } as never,
  });
  assert.deepEqual(describe(jobFields, job), [
    '* id ID number 12',
    '* status Status text "running"',
    '* summary Summary text "INSTANCE_CREATE(web1)"',
    '  node Node text "node1"',
    '* waits_for Waits_for list [10,11]',
    '  waits_because Waits_because text "a slot"',
    '  opcode OpCode text "INSTANCE_CREATE"',
    '  instance Instance text "web1"',
    '  error Error text "CONFLICT"',
    '  message Message text "it failed"',
    '  stage Stage text "create-disks"',
    '  received_ts Received time 1795248000000',
    '  start_ts Start time 1795248001000',
    '  end_ts End time 1795248002000',
  ]);
});

test('OS definitions have these columns', () => {
  const os = { ...sampleOs({ trusted: true, hidden: true }), listed: 'debian+trixie' };
  assert.deepEqual(describe(osFields, { ...os, differing: ['node2'] }), [
    '* name Name text "debian+trixie"',
    '  os OS text "debian"',
    '  path Path text "/srv/ganeti/os/debian"',
    '  valid Valid boolean true',
    '  trusted Trusted boolean true',
    '  hidden Hidden boolean true',
    '  blacklisted Blacklisted boolean false',
    '  api_versions API list [20]',
    '  variants Variants list ["bookworm","trixie"]',
    '  parameters Parameters list ["mirror"]',
    '  differing Differing_nodes list ["node2"]',
  ]);
});

test('profiles have these columns', () => {
  const profile = {
    name: 'web',
    osParameters: { color: 'red' },
    osParametersPrivate: { license: '<redacted>' as const },
    instances: ['web1'],
  };
  assert.deepEqual(describe(profileFields, profile), [
    '* name Profile text "web"',
    '* parameters Parameters list ["color","license"]',
    '* instances Instances list ["web1"]',
  ]);
});

test('networks have these columns', () => {
  const network = {
    name: 'lan',
    uuid: '5f8d1c2e-0b6a-4c3d-9e7f-1a2b3c4d5e6f',
    network: '10.9.0.0/24',
    gateway: '10.9.0.1',
    macPrefix: 'aa:00:01',
    reserved: ['10.9.0.9'],
    tags: ['blue'],
    connections: {
      node1: { mode: 'nat' as const },
      node2: { mode: 'bridged' as const, link: 'br0' },
    },
    size: 254,
    free: 250,
    addresses: ['10.9.0.5', '10.9.0.6'].map((ip) => ({ ip, instance: 'web1' })),
  };
  assert.deepEqual(describe(networkFields, network), [
    '* name Network text "lan"',
    '  uuid UUID text "5f8d1c2e-0b6a-4c3d-9e7f-1a2b3c4d5e6f"',
    '* network Subnet text "10.9.0.0/24"',
    '* gateway Gateway text "10.9.0.1"',
    '* mac_prefix MacPrefix text "aa:00:01"',
    '* group_list Connections list ["node1 (nat)","node2 (bridged, br0)"]',
    '  free_count FreeCount number 250',
    '  reserved_count ReservedCount number 4',
    '  external_reservations ExternalReservations list ["10.9.0.9"]',
    '  inst_list Instances list ["web1"]',
    '* tags Tags list ["blue"]',
  ]);
});

test('boot environments have these columns', () => {
  const bootEnv = {
    name: 'debian-12-install',
    description: 'Debian 12',
    osName: 'debian-12',
    installs: true,
    isoFile: 'debian.iso',
    isoUrl: 'http://deb.example.com/debian.iso',
    templates: ['preseed'],
    requiredParams: ['color'],
    instances: ['web1'],
    document: {},
  };
  assert.deepEqual(describe(bootEnvFields, bootEnv), [
    '* name BootEnv text "debian-12-install"',
    '* os OS text "debian-12"',
    '  installs Installs boolean true',
    '* archive Archive text "debian.iso"',
    '  url URL text "http://deb.example.com/debian.iso"',
    '  templates Templates list ["preseed"]',
    '  params Params list ["color"]',
    '* instances Instances list ["web1"]',
    '  description Description text "Debian 12"',
  ]);
});

test('boot archives have these columns', () => {
  const archive = { isoFile: 'a.iso', sha256: 'ab12', sizeBytes: 3 * 2 ** 20, bootEnvs: ['one'] };
  assert.deepEqual(describe(bootArchiveFields, archive), [
    '* name Archive text "a.iso"',
    '* size Size size 3',
    '* bootenvs BootEnvs list ["one"]',
    '  sha256 SHA256 text "ab12"',
  ]);
});

test('snapshots have these columns', () => {
  const snapshot = {
    uuid: '5f8d1c2e-0b6a-4c3d-9e7f-1a2b3c4d5e6f',
    name: 'before',
    takenAtMs: NOW_MS,
    wasRunning: true,
    instanceId: '0a1b2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d',
    installState: 'installed' as const,
    disks: [{ uuid: 'aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee', name: null, sizeBytes: 2 * 2 ** 30 }],
    hostKeys: null,
  };
  assert.deepEqual(describe(snapshotFields, snapshot), [
    '* name Snapshot text "before"',
    '* taken Taken time 1795248000000',
    '* running Running boolean true',
    '* disk.sizes Disk_sizes size [2048]',
    '  uuid UUID text "5f8d1c2e-0b6a-4c3d-9e7f-1a2b3c4d5e6f"',
  ]);
});

test('a list names the program whose list-fields shows its columns', () => {
  assert.deepEqual(
    [nodeFields, jobFields, osFields, profileFields, networkFields, bootEnvFields].map(
      ({ program }) => program,
    ),
    ['gnt-node', 'gnt-job', 'gnt-os', 'gnt-profile', 'gnt-network', 'gnt-bootenv'],
  );
});
