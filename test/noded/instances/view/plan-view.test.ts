import assert from 'node:assert/strict';
import { test } from 'node:test';
import { instanceView } from '#shared/contract/view.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { nicNetwork } from '#shared/contract/static-network.ts';
import { Secret } from '#shared/secret/secret.ts';
import { planInstall } from '../../../../noded/provision/install/plan-install.ts';
import { describeInstance } from '../../../../noded/instances/describe-instance.ts';
import {
  explainDatasource,
  isChannelFirst,
  planSmbios,
  refuseUnservedNetworkConfig,
  warnOfUnheard,
} from '../../../../noded/instances/view/cloud-init-datasource.ts';
import {
  instanceLayer,
  osLayer,
  resolveParameters,
} from '../../../../noded/instances/parameters/os-parameters.ts';
import { newInstanceId } from '../../../../noded/instances/record/plan-record.ts';
import { planView, type ViewInput } from '../../../../noded/instances/view/plan-view.ts';
import { clusterRecord, instanceRecord } from '../../support/records.ts';

const installId = '11111111-2222-4333-8444-555555555555';

function view(overrides: Partial<ViewInput> = {}) {
  return planView({
    instance: instanceRecord({ communication: true, nics: [{}] }),
    cluster: clusterRecord,
    device: 'gnt.com.3',
    revision: 7,
    parameters: resolveParameters([]),
    install: null,
    ...overrides,
  });
}

const appliance = { name: 'mini', source: 'os debian' };

test('a view is what metad accepts, with the channel as the last NIC and as its own', () => {
  const planned = instanceView.parse(view());
  assert.deepEqual(
    planned.nics.map((nic) => nic.communication),
    [false, true],
  );
  assert.equal(planned.nics.at(-1)?.mac, planned.channel.mac);
  assert.equal(planned.channel.device, 'gnt.com.3');
  assert.equal(planned.mode, 'run');
});

test('a view tells values by visibility, and of a secret that is not known that it is not', () => {
  const instance = instanceRecord({
    osParameters: { a: 'own' },
    osParametersPrivate: { b: 'own' },
    osParametersSecret: { known: 'x', lost: 'x' },
  });
  const own = instanceLayer(instance, new Map([['known', new Secret('value')]]));
  assert.deepEqual(view({ instance, parameters: resolveParameters([own]) }).osParameters, {
    a: { value: 'own', visibility: 'public' },
    b: { value: 'own', visibility: 'private' },
    known: { value: 'value', visibility: 'secret' },
    lost: { value: null, visibility: 'secret' },
  });
});

test('while installing, the view has the plan and the scripts, and is valid', () => {
  const instance = instanceRecord({ communication: true, osImage: '/a.raw', osImageGrow: true });
  const plan = planInstall({
    instance,
    installId,
    imageSizeBytes: 1234,
    hasPackage: true,
    script: { name: 'create', path: 'untrusted/create', environment: { OS_API_VERSION: '20' } },
  });
  const planned = instanceView.parse(
    view({
      instance,
      install: {
        plan,
        scripts: new Map([['create', Buffer.from('#!/bin/sh\n')]]),
        definitionTar: Buffer.from('tar'),
        imageSizeBytes: 1234,
        hasPackage: true,
      },
    }),
  );
  assert.equal(planned.mode, 'install');
  assert.equal(
    Buffer.from(planned.install?.scripts['create'] ?? '', 'base64').toString(),
    '#!/bin/sh\n',
  );
  assert.deepEqual(planned.install?.plan.image, {
    serial: 'image',
    fileSizeBytes: 1234,
    grow: true,
    isDiskBlank: true,
  });
  assert.deepEqual(planned.install.plan.disks[0]?.serial, 'disk0');
  assert.deepEqual(planned.install.plan.personalization, { format: 'tar.gz' });
});

test('the names of allowed mirrors are in the plan while installing, their URLs in no view', () => {
  const instance = instanceRecord({ communication: true });
  const plan = planInstall({
    instance,
    installId,
    imageSizeBytes: null,
    hasPackage: false,
    script: null,
  });
  const content = {
    plan,
    scripts: new Map(),
    definitionTar: null,
    imageSizeBytes: null,
    hasPackage: false,
  };
  const cluster = { ...clusterRecord, packageMirrors: { debian: 'http://deb.example.org/debian' } };
  const views = [view({ instance, cluster, install: content }), view({ instance, cluster })];
  assert.deepEqual(views[0]?.install?.plan.mirrors, ['debian']);
  assert.ok(!JSON.stringify(views).includes('deb.example.org'));
  assert.equal(view({ instance, install: content }).install?.plan.mirrors, undefined);
});

test('a plan holds no OS parameter, public ones neither', () => {
  const instance = instanceRecord({
    osParameters: { a: 'VALUE' },
    osParametersPrivate: { b: 'VALUE' },
    osParametersSecret: { c: 'VALUE' },
  });
  const plan = planInstall({
    instance,
    installId,
    imageSizeBytes: null,
    hasPackage: false,
    script: null,
  });
  assert.ok(!JSON.stringify(plan).includes('VALUE'));
  assert.deepEqual([plan.image, plan.scripts, plan.personalization], [null, null, null]);
});

test('what an API shows of an instance has no private value, no secret and no document', () => {
  const document = Buffer.from('#!DOCUMENT').toString('base64');
  const record = instanceRecord({
    osParameters: { a: 'shown' },
    osParametersPrivate: { b: 'HIDDEN' },
    osParametersSecret: { c: 'HIDDEN' },
    userData: document,
    vendorData: document,
    networkConfig: document,
    hooks: [{ name: 'own.yaml', content: document }],
  });
  // A record from a release that allowed logins in URLs.
  const instance = { ...record, osImage: 'http://me:HIDDEN@host/a.raw' };
  const parameters = resolveParameters([
    osLayer({
      name: 'debian',
      osParameters: { d: 'default' },
      osParametersPrivate: { e: 'HIDDEN' },
    }),
    instanceLayer(instance, new Map([['c', new Secret('HIDDEN')]])),
  ]);
  const info = describeInstance(instance, null, { parameters, appliance });
  const shown = JSON.stringify(info);
  assert.ok(!shown.includes('HIDDEN') && !shown.includes(document), shown);
  assert.deepEqual(info.osParametersEffective['a'], {
    value: 'shown',
    visibility: 'public',
    source: 'instance',
  });
  assert.equal(info.osParametersEffective['e']?.source, 'os debian');
  assert.deepEqual([info.hasUserData, info.secretNames], [true, ['c']]);
  assert.deepEqual(info.hookNames, ['own.yaml']);
  assert.deepEqual(info.applianceInForce, appliance);
});

test('the status tells what is wanted from what is', () => {
  const running = {
    pid: 1,
    accelerator: 'tcg',
    startedAtMs: 0,
    tap: null,
    readyAtMs: null,
    halt: null,
    bootEnv: null,
    lostSecrets: [] as string[],
  } as const;
  const status = (overrides: Parameters<typeof instanceRecord>[1], isRunning: boolean) =>
    describeInstance(
      instanceRecord({}, overrides),
      isRunning ? { machine: running, report: null } : null,
      { parameters: resolveParameters([]), appliance },
    ).status;
  assert.equal(status({ adminState: 'up', installState: 'installed' }, true), 'running');
  const halted = { ...running, halt: { reason: 'disk-full', sinceMs: 1 } } as const;
  const up = instanceRecord({}, { adminState: 'up', installState: 'installed' });
  const paused = describeInstance(
    up,
    { machine: halted, report: null },
    { parameters: resolveParameters([]), appliance },
  );
  assert.equal(paused.status, 'paused');
  assert.match(paused.explanation, /full on node1.*resumes by itself/);
  assert.equal(status({ adminState: 'up', installState: 'installed' }, false), 'ERROR_down');
  assert.equal(status({ adminState: 'down', installState: 'installed' }, true), 'ERROR_up');
  assert.equal(status({ adminState: 'down', installState: 'installed' }, false), 'ADMIN_down');
  assert.equal(status({ installState: 'installing' }, false), 'installing');
  assert.equal(status({ installState: 'failed' }, false), 'install_failed');
});

test('DMI points a stock cloud-init at the first dialect that it speaks', () => {
  const smbios = (input: Parameters<typeof instanceRecord>[0]) =>
    planSmbios(instanceRecord({ communication: true, seedDisk: false, ...input }));
  assert.match(smbios({ dialects: ['ganeti', 'ec2'] }).uuid, /^ec2/);
  assert.match(smbios({ dialects: ['ganeti', 'ec2'] }).serial, /^ec2/);
  assert.equal(smbios({ dialects: ['openstack', 'ec2'] }).product, 'OpenStack Nova');
  assert.equal(
    smbios({ dialects: ['nocloud'] }).serial,
    'ds=nocloud;s=http://169.254.169.254/nocloud/;dsmode=net',
  );
});

test('with a seed disk, or without the channel, DMI points nowhere', () => {
  for (const input of [
    { seedDisk: true },
    { communication: false, dialects: ['openstack' as const] },
  ]) {
    const { product, serial } = planSmbios(instanceRecord({ communication: true, ...input }));
    assert.deepEqual([product, serial.includes('ds=')], ['KVM instance', false]);
  }
});

test('a UUID that looks like EC2’s is given only where DMI points at EC2', () => {
  const looksLikeEc2 = /^(ec2|.{4}2.ec)/i;
  const uuid = (input: Partial<InstanceRecord>) =>
    planSmbios({
      ...instanceRecord({ communication: true, seedDisk: false }),
      dialects: ['ec2'],
      ...input,
    }).uuid;
  for (const instanceId of [
    'ec2a1b2c-0000-4000-8000-000000000001',
    '45e12aec-dcd1-4213-94ed-01234abcdef0',
  ]) {
    for (const input of [
      { communication: false },
      { seedDisk: true, dialects: ['ec2' as const, 'nocloud' as const] },
      { dialects: ['openstack' as const] },
      { dialects: ['nocloud' as const] },
      { dialects: ['ganeti' as const] },
    ]) {
      assert.doesNotMatch(uuid({ instanceId, ...input }), looksLikeEc2, JSON.stringify(input));
    }
    assert.doesNotMatch(
      newInstanceId(() => instanceId, ['ganeti', 'openstack']),
      looksLikeEc2,
    );
  }
  assert.match(
    newInstanceId(() => '45e12aec-dcd1-4213-94ed-01234abcdef0', ['ec2']),
    /^ec2/,
  );
});

test('a network configuration is refused where the guest’s datasource has no place for it', () => {
  const record = (input: Partial<InstanceRecord>): InstanceRecord => ({
    ...instanceRecord({ communication: true, seedDisk: false }),
    networkConfig: 'dmVyc2lvbjogMgo=',
    ...input,
  });
  for (const dialects of [['ec2' as const], ['openstack' as const]])
    assert.throws(() => refuseUnservedNetworkConfig(record({ dialects })), /Ec2|OpenStack/);
  refuseUnservedNetworkConfig(record({ dialects: ['nocloud'] }));
  refuseUnservedNetworkConfig(record({ dialects: ['ec2', 'nocloud'], seedDisk: true }));
  refuseUnservedNetworkConfig(record({ dialects: ['ec2'], networkConfig: null }));
});

test('addresses that nobody will tell the guest are named', () => {
  const [nic] = instanceRecord({ communication: true, nics: [{ mode: 'user' }] }).nics;
  const network = nicNetwork.parse({ addresses: ['10.0.0.5/24'] });
  const unheard = (input: Partial<InstanceRecord>): string | null =>
    warnOfUnheard({
      ...instanceRecord({ communication: true, seedDisk: false }),
      nics: nic === undefined ? [] : [{ ...nic, network }],
      ...input,
    })[0] ?? null;
  assert.match(unheard({ dialects: ['ec2'] }) ?? '', /asks DHCP/);
  assert.match(unheard({ communication: false }) ?? '', /communication is off/);
  assert.equal(unheard({ dialects: ['ganeti', 'openstack'] }), null);
  assert.equal(unheard({ seedDisk: true }), null);
});

test('settings that keep cloud-init from reporting its boot are named, unless they say so themselves', () => {
  const told = (input: Partial<InstanceRecord>): string =>
    warnOfUnheard({ ...instanceRecord({ communication: true, seedDisk: false }), ...input }).join();
  const noVerdict = /cloud-init will report no boot verdict: /;
  assert.equal(told({ dialects: ['ganeti', 'openstack'] }), '');
  assert.equal(told({ seedDisk: true }), '');
  for (const silent of [
    { dialects: ['ec2'] },
    { dialects: ['nocloud'] },
    { metadataToken: 'required' },
    { metadataToken: 'required', seedDisk: true, dialects: ['ganeti', 'openstack'] },
  ] satisfies Partial<InstanceRecord>[])
    assert.match(told(silent), noVerdict);
  assert.equal(told({ dialects: ['ec2', 'ganeti'], hvparams: { boot_report: 'user-data' } }), '');
  assert.doesNotMatch(told({ dialects: ['ec2'], communication: false }), noVerdict);
  assert.doesNotMatch(told({ dialects: ['ec2'], hvparams: { boot_report: 'no' } }), noVerdict);
});

test('info says which datasource a stock image will use, or why none', () => {
  const datasource = (input: Parameters<typeof instanceRecord>[0]) =>
    explainDatasource(instanceRecord({ communication: true, ...input })).datasource;
  assert.equal(datasource({}), 'NoCloud');
  assert.equal(datasource({ communication: false }), null);
  assert.equal(datasource({ dialects: ['ec2'] }), 'Ec2');
  assert.equal(datasource({ dialects: ['openstack'] }), 'OpenStack');
  assert.equal(datasource({ dialects: ['ganeti'] }), null);
});

test('the channel is the first NIC where cloud-init asks on the first alone, else it is told of at once', () => {
  const read = (dialects: ('ganeti' | 'ec2' | 'openstack' | 'nocloud')[], seedDisk = false) => {
    const instance = instanceRecord({ communication: true, dialects, seedDisk, nics: [{}] });
    const isTold = warnOfUnheard(instance).some((text) => text.includes('not the first NIC'));
    return [isChannelFirst(instance), isTold];
  };
  assert.deepEqual(read(['ganeti', 'ec2', 'openstack']), [true, false]);
  assert.deepEqual(read(['openstack', 'ec2']), [true, false]);
  assert.deepEqual(read(['nocloud', 'ec2']), [false, true]);
  assert.deepEqual(read(['ec2', 'nocloud'], true), [false, false]);
  assert.deepEqual(read(['ganeti']), [false, false]);
});
