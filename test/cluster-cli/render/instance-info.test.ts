import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { BootReport } from '#shared/contract/boot-report.ts';
import type { InstanceInfo } from '#shared/contract/instance.ts';
import type { LifecycleInfo } from '#shared/contract/lifecycle.ts';
import { summaryFields } from '../../../cluster-cli/fields/instance-fields.ts';
import { renderInstanceInfo } from '../../../cluster-cli/render/instance-info.ts';
import { selectFields } from '../../../cluster-cli/render/select.ts';
import { sampleInstance } from '../support/samples.ts';

const RUN = '5b1c7a52-6a0f-4b39-9d27-0f6b7b1b0c11';

test('info tells how far the run lists are, and nothing of them where there are none', () => {
  const lifecycle: LifecycleInfo = {
    ...{ run: RUN, state: 'stranded' as const, kind: null, deadlineMs: null },
    ...{ script: 'boot/01-base', exitStatus: 3 },
    reason: 'boot/01-base ended with exit status 3',
  };
  const lines = renderInstanceInfo(sampleInstance({ lifecycle }), true);
  const at = lines.findIndex((line) => line.includes('Lifecycle'));
  assert.deepEqual(
    lines.slice(at, at + 4).map((line) => line.trim().replace(/^- /, '')),
    [
      'Lifecycle: stranded',
      'reason: boot/01-base ended with exit status 3',
      'script: boot/01-base, exit status 3',
      `run: ${RUN}`,
    ],
  );
  const without = renderInstanceInfo(sampleInstance({ lifecycle: null }));
  assert.ok(!without.some((line) => line.includes('Lifecycle')));
});

test('info names a silent agent among the points that need attention', () => {
  const lifecycle: LifecycleInfo = {
    ...{ run: RUN, state: 'booting' as const, kind: null, deadlineMs: null },
    ...{ script: null, exitStatus: null, reason: 'the agent is silent' },
  };
  const attention = (of: LifecycleInfo): string =>
    renderInstanceInfo(sampleInstance({ name: 'web1', lifecycle: of })).join('\n');
  assert.match(attention(lifecycle), /run lists not reported: the agent is silent/);
  assert.match(attention(lifecycle), /Next step: gnt-instance console web1/);
  assert.doesNotMatch(attention({ ...lifecycle, reason: null }), /not reported/);
});

test('info tells what a guest that runs boots, and what is not as its record says', () => {
  const machine = { pid: 1, accelerator: 'tcg', startedAtMs: 0, tap: 'gnt.com.0' } as const;
  const lost = [{ path: 'machines/x/seed', secrets: ['key'] }];
  const failure = { code: 'BOOTENV_RENDER', message: 'template seed:2:9: there is no param' };
  const told = (bootEnv: object): readonly string[] => {
    const running = { ...machine, readyAtMs: null, bootEnv: { name: 'rescue', ...bootEnv } };
    const instance = sampleInstance({ running: running as NonNullable<InstanceInfo['running']> });
    return renderInstanceInfo(instance, true).map((line) => line.trim().replace(/^- /, ''));
  };
  assert.ok(told({ failure: null, lost: [] }).includes('boot environment: rescue'));
  const stale = told({ failure, lost });
  const at = stale.indexOf('boot environment: rescue, with its former files');
  assert.deepEqual(stale.slice(at + 1, at + 3), [
    'not rendered: BOOTENV_RENDER: template seed:2:9: there is no param',
    'not served: machines/x/seed, because the secret key is lost',
  ]);
});

test('info tells what cloud-init says of the boot, and no control character of it', () => {
  const boot: BootReport = {
    ...{ status: 'error', stage: 'modules-final' },
    errors: ['a\u001b[2J\u0007b\nRunning: false'],
    recoverableErrors: ['WARNING: c\u202e'],
    stages: [{ name: 'init-local', seconds: 2.51 }],
  };
  const lines = renderInstanceInfo(sampleInstance({ boot }), true);
  const at = lines.findIndex((line) => line.includes('cloud-init: error'));
  const told = lines.slice(at, at + 4).map((line) => line.trim().replace(/^- /, ''));
  assert.equal(told[0], 'cloud-init: error, at modules-final');
  assert.match(told[1] ?? '', /^error: a.*b.*Running: false$/);
  assert.match(told[2] ?? '', /^recoverable error: WARNING: c/);
  assert.equal(told[3], 'init-local: 2.5 s');
  assert.doesNotMatch(lines.join(''), /[\p{Cc}\u202a-\u202e]/u);
});

test('info of a simple instance fits on one screen, and --all shows every parameter', () => {
  const running = { pid: 7, accelerator: 'kvm', startedAtMs: 0, readyAtMs: 9000, tap: null };
  const instance = sampleInstance({ running: running as NonNullable<InstanceInfo['running']> });
  const short = renderInstanceInfo(instance);
  assert.ok(short.length <= 40, `${short.length} lines`);
  const whole = renderInstanceInfo(instance, true);
  assert.ok(whole.length > short.length);
  const isIn = (lines: readonly string[], key: string): boolean =>
    lines.some((line) => line.trim().startsWith(`${key}:`));
  for (const key of ['UUID', 'seed disk', 'cloud-init datasource', 'effective OS parameters'])
    assert.deepEqual([isIn(short, key), isIn(whole, key)], [false, true], key);
  assert.match(short.join('\n'), /license: <redacted>[^]*secret OS parameters: password/);
});

test('info names what needs attention before the parameters, with the command to run next', () => {
  const boot: BootReport = {
    ...{ status: 'error' as const, stage: 'modules-final' as const, stages: [] },
    ...{ errors: ['no network'], recoverableErrors: [] },
  };
  const failed = renderInstanceInfo(sampleInstance({ boot }));
  assert.deepEqual(failed.slice(3, 6), [
    'Needs attention:',
    '  cloud-init error: no network',
    'Next step: gnt-instance exec web1.example.com cloud-init status --long',
  ]);
  const crashed = renderInstanceInfo(
    sampleInstance({ status: 'ERROR_down', explanation: 'QEMU ended', running: null, boot: null }),
  );
  assert.ok(crashed.includes('Next step: gnt-instance startup web1.example.com'));
  const off = sampleInstance({
    running: null,
    boot: null,
    adminState: 'down',
    status: 'ADMIN_down',
  });
  assert.ok(renderInstanceInfo(off).includes('Next step: gnt-instance startup web1.example.com'));
});

test('info and list name the secrets that a running guest cannot read', () => {
  const running = { pid: 7, accelerator: 'kvm', startedAtMs: 0, readyAtMs: null, tap: 'gnt.com.0' };
  const instance = sampleInstance({
    running: { ...running, lostSecrets: ['password'] } as NonNullable<InstanceInfo['running']>,
  });
  const lines = renderInstanceInfo(instance).map((line) => line.trim());
  assert.ok(lines.includes('secrets lost: the guest cannot read password'), lines.join('\n'));
  assert.ok(
    lines.includes(
      'Next step: gnt-instance startup --os-parameters-secret password=@FILE web1.example.com',
    ),
  );
  const [field] = selectFields(summaryFields, 'lost_secrets');
  assert.deepEqual(field?.get(instance), ['password']);
});

test('info shows what runs now, and what holds after the next start', () => {
  const running = { pid: 7, accelerator: 'kvm', startedAtMs: 0, readyAtMs: 9000, tap: 'gnt.com.0' };
  const { nics, disks, beparams, ...rest } = sampleInstance();
  const nic = {
    ...{ uuid: RUN, mac: '52:54:00:00:00:01', mode: 'user' as const, link: null, name: null },
    ...{ ip: null, network: null },
  };
  const instance: InstanceInfo = {
    ...{ ...rest, disks, beparams, communication: false, hvparams: { firmware: 'uefi' } },
    nics: [...nics, nic],
    running: running as NonNullable<InstanceInfo['running']>,
    partsOfRun: {
      ...{ nics, disks, beparams: { ...beparams, memoryMiB: 512 }, communication: true },
      ...{ hvparams: {}, cloudInit: { datasource: 'NoCloud', reason: 'the seed disk' } },
    },
    cloudInit: { datasource: null, reason: 'communication is off' },
  };
  const told = (shown: InstanceInfo, isWhole = false): readonly string[] =>
    renderInstanceInfo(shown, isWhole).map((line) => line.trim());
  const lines = told(instance);
  for (const line of [
    'restart needed: changes of NICs, memory, channel, and firmware take effect at the next start',
    'Next step: gnt-instance reboot web1.example.com',
    'Channel: on; after the next start: off (on during installations)',
    'memory: 512M; after the next start: 1.0G',
    'VCPUs: 2',
    'nic/0: none; after the next start: MAC 52:54:00:00:00:01, mode user, DHCP',
    'firmware: none; after the next start: uefi',
    'cloud-init datasource: NoCloud (the seed disk); after the next start: none (communication is off)',
  ])
    assert.ok(lines.includes(line), `${line}\n${lines.join('\n')}`);
  assert.ok(
    !told({ ...instance, running: null })
      .join('\n')
      .includes('next start'),
  );
});

test('info shows the provenance of an installation, and nothing for records without it', () => {
  const provenance = {
    ...{ imageChecksum: 'sha256:01', imageKey: 'openpgp:02' },
    ...{ osDigest: 'sha256:03', applianceDigest: null },
  };
  const install = {
    ...{ jobId: 7, startedAtMs: 1000, endedAtMs: 5999, stages: [], logFile: null },
    ...{ state: 'success' as const, stage: null, error: null },
  };
  const show = (of: InstanceInfo['install']): readonly string[] =>
    renderInstanceInfo(sampleInstance({ install: of }), true).map((line) => line.trim());
  const lines = show({ ...install, provenance });
  const at = lines.indexOf('provenance:');
  assert.deepEqual(lines.slice(at, at + 5), [
    'provenance:',
    'image: sha256:01',
    'image signed by: openpgp:02',
    'OS definition: sha256:03',
    'appliance: -',
  ]);
  assert.ok(!show(install).includes('provenance:'));
});

test('info shows each setting that is not the default, also without --all', () => {
  const nic = {
    ...{ uuid: RUN, mac: '52:54:00:00:00:01', mode: 'bridged', link: 'br0', name: 'lan' },
    ...{ ip: '192.0.2.9', networkName: 'inner', reach: 'public' },
    network: {
      ...{ addresses: ['192.0.2.9/24'], gateways: ['192.0.2.1'], nameservers: ['192.0.2.2'] },
      ...{ search: ['example.com'], routes: [{ to: '10.0.0.0/8', via: '192.0.2.3' }], mtu: 1400 },
    },
  };
  const instance = sampleInstance({
    ...{ running: null, bootEnv: 'rescue', installTimeoutS: 0, profiles: ['web', 'db'] },
    ...{ installParameters: { accel: 'tcg' }, hvparams: { accel: 'tcg' }, metadata: { role: 'x' } },
    ...{ hasUserData: true, hasVendorData: true, hasNetworkConfig: true, sshKeys: ['ssh-x A'] },
    ...{ dialects: ['ec2'], metadataToken: 'required', communication: false },
    ...{ nics: [nic] as unknown as InstanceInfo['nics'] },
    ssh: { user: 'debian', hostKeys: [], saidHostKeys: [] },
    snapshots: [{ name: 's1' }, { name: 's2' }] as unknown as InstanceInfo['snapshots'],
  });
  const shown = renderInstanceInfo(instance).map((line) => line.trim().replace(/^- /, ''));
  for (const line of [
    'Running: no',
    'Boot environment: rescue',
    'installation timeout: none',
    'profiles: web, db',
    'accel: tcg',
    'role: x',
    'dialects: ec2',
    'session tokens: required',
    'documents: user data, vendor data, network config, 1 SSH key(s)',
    'SSH login: debian',
    'snapshots: s1, s2',
    'nic/0: MAC 52:54:00:00:00:01, mode bridged, link br0, network inner, reach public, ' +
      'IP 192.0.2.9, addresses 192.0.2.9/24, gateway 192.0.2.1, DNS 192.0.2.2, ' +
      'search example.com, route 10.0.0.0/8 via 192.0.2.3, MTU 1400, name lan',
  ])
    assert.ok(shown.includes(line), `${line}\n${shown.join('\n')}`);
  const plain = renderInstanceInfo(sampleInstance()).join('\n');
  for (const key of ['Boot environment', 'installation timeout', 'profiles', 'snapshots'])
    assert.ok(!plain.includes(`${key}:`), key);
  assert.doesNotMatch(plain, /dialects|session tokens|install parameters|SSH login/);
  const waiting = { ...instance, installTimeoutS: 60, nics: [{ ...nic, network: null }] };
  const again = renderInstanceInfo(waiting as unknown as InstanceInfo).join('\n');
  assert.match(again, /installation timeout: 60 s/);
  assert.match(again, /IP 192\.0\.2\.9, DHCP, name lan/);
});

test('info of a failed installation names its stage, error and hint', () => {
  const install = {
    ...{ jobId: 9, state: 'failed', startedAtMs: 1000, endedAtMs: 4000, stage: 'os-scripts' },
    ...{ stages: [{ stage: 'image', durationMs: 1500, summary: '' }], logFile: '/log' },
    error: { code: 'SCRIPT_FAILED', message: 'create ended with 3', hint: 'see the log' },
    provenance: {
      ...{ imageChecksum: 'sha256:0', imageKey: 'k', osDigest: 'o' },
      applianceDigest: 'a',
    },
  } as unknown as NonNullable<InstanceInfo['install']>;
  const shown = renderInstanceInfo(sampleInstance({ install })).map((line) =>
    line.trim().replace(/^- /, ''),
  );
  for (const line of [
    'Last installation: failed after 3.0 s (job 9)',
    'image: 1.5 s',
    'failed in: os-scripts',
    'error: SCRIPT_FAILED: create ended with 3',
    'hint: see the log',
    'log: /log',
  ])
    assert.ok(shown.includes(line), `${line}\n${shown.join('\n')}`);
  assert.doesNotMatch(shown.join('\n'), /current stage|image signed by/);
  const now = { ...install, state: 'installing', endedAtMs: null, error: null } as typeof install;
  const during = renderInstanceInfo(sampleInstance({ install: now }), true).join('\n');
  assert.match(during, /Last installation: installing \(job 9\)[^]*current stage: os-scripts/);
  assert.match(during, /image signed by: k/);
});
