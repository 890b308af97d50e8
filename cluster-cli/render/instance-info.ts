import type { ApplianceInForce } from '#shared/contract/appliance-choice.ts';
import type { BootReport } from '#shared/contract/boot-report.ts';
import type { LifecycleInfo } from '#shared/contract/lifecycle.ts';
import type { SshInfo } from '#shared/contract/host-keys.ts';
import { refusedHostKeys } from '#shared/contract/refused-host-keys.ts';
import type { InstanceInfo, InstallRecord, RunningBootEnv } from '#shared/contract/instance.ts';
import type { NicNetwork } from '#shared/contract/static-network.ts';
import { MIB } from '#shared/units/bytes.ts';
import { formatBytes, formatDuration, formatMiB, formatTime } from './format.ts';
import { formatFingerprint } from './host-keys.ts';
import { type OutlineEntry, renderOutline } from './outline.ts';

/**
 * What `gnt-instance info` prints. Private values are not in the record, secrets have names only.
 */
export function renderInstanceInfo(instance: InstanceInfo): readonly string[] {
  return renderOutline(describeInstance(instance));
}

function describeInstance(i: InstanceInfo): readonly OutlineEntry[] {
  return [
    { key: 'Instance name', value: i.name },
    { key: 'State', value: i.explanation },
    { key: 'Status', value: `${i.status} (configured to be ${i.adminState})` },
    { key: 'UUID', value: i.uuid },
    { key: 'Instance id', value: i.instanceId },
    { key: 'Serial number', value: i.serialNo },
    { key: 'Creation time', value: formatTime(i.createdAtMs) },
    { key: 'Modification time', value: formatTime(i.modifiedAtMs) },
    { key: 'Primary node', value: i.primaryNode },
    { key: 'Autostart', value: describeAutostart(i.autostart) },
    { key: 'Tags', value: i.tags.join(', ') },
    ...(i.bootEnv === null ? [] : [{ key: 'BootEnv', value: i.bootEnv }]),
    describeRun(i),
    ...(i.lifecycle == null ? [] : [describeLifecycle(i.lifecycle)]),
    describeOs(i),
    describeChannel(i),
    describeHardware(i),
    { key: 'Hypervisor', value: 'kvm', children: describeSettings(i.hvparams) },
    ...(i.install ? [describeInstall(i.install)] : []),
  ];
}

function describeAutostart(settings: InstanceInfo['autostart']): string {
  const { boot, priority, delayS, restarts, lostSecrets } = settings;
  const order = `priority ${priority}, delay ${delayS} s`;
  return [
    boot ? `after a reboot of the host, ${order}` : 'not after a reboot of the host',
    `${restarts} restarts after crashes`,
    ...(lostSecrets === 'wait' ? ['not without its secrets'] : []),
  ].join('; ');
}

function describeRun({ running, boot }: InstanceInfo): OutlineEntry {
  if (running === null) return { key: 'Running', value: false };
  return {
    key: 'Running',
    value: `yes, since ${formatTime(running.startedAtMs)}`,
    children: [
      { key: 'accelerator', value: running.accelerator },
      { key: 'process', value: running.pid },
      ...(running.halt
        ? [
            {
              key: 'guest stands still',
              value: `${running.halt.reason}, since ${formatTime(running.halt.sinceMs)}`,
            },
          ]
        : []),
      {
        key: 'guest is up',
        value:
          running.readyAtMs === null
            ? 'not said yet'
            : `${formatTime(running.readyAtMs)}, ${formatDuration(running.readyAtMs - running.startedAtMs)} after its start`,
      },
      ...(running.bootEnv == null ? [] : [describeBootEnv(running.bootEnv)]),
      ...(boot === null ? [] : [describeBoot(boot)]),
    ],
  };
}

/** What it boots from its channel, and what is not as its record says now. */
function describeBootEnv({ name, failure, lost }: RunningBootEnv): OutlineEntry {
  return {
    key: 'BootEnv',
    value: failure === null ? name : `${name}, as it was given before`,
    children: [
      ...(failure === null
        ? []
        : [{ key: 'not rendered', value: `${failure.code}: ${failure.message}` }]),
      ...lost.map(({ path, secrets }) => ({
        key: 'not served',
        value: `${path}, until ${secrets.join(', ')} is given again (gnt-instance modify)`,
      })),
    ],
  };
}

/** What cloud-init says of the present boot, as `cloud-init status --long` does inside. */
function describeBoot(boot: BootReport): OutlineEntry {
  return {
    key: 'cloud-init',
    value: boot.stage === null ? boot.status : `${boot.status}, at ${boot.stage}`,
    children: [
      ...boot.errors.map((text) => ({ key: 'error', value: text })),
      ...boot.recoverableErrors.map((text) => ({ key: 'recoverable error', value: text })),
      ...boot.stages.map(({ name, seconds }) => ({ key: name, value: `${seconds.toFixed(1)} s` })),
    ],
  };
}

/** How far its run lists are, in the present run or at the end of the last one. */
function describeLifecycle(lifecycle: LifecycleInfo): OutlineEntry {
  const { state, kind, script, exitStatus, reason, run, deadlineMs } = lifecycle;
  return {
    key: 'Lifecycle',
    value: kind === null ? state : `${state} (${kind})`,
    children: [
      ...(reason === null ? [] : [{ key: 'reason', value: reason }]),
      ...(script === null
        ? []
        : [
            {
              key: 'script',
              value: exitStatus === null ? script : `${script}, exit status ${exitStatus}`,
            },
          ]),
      ...(deadlineMs === null ? [] : [{ key: 'deadline', value: formatTime(deadlineMs) }]),
      { key: 'run', value: run },
    ],
  };
}

function describeOs(i: InstanceInfo): OutlineEntry {
  const effective = Object.entries(i.osParametersEffective).map(
    ([name, { value, visibility, source }]) => ({
      key: name,
      value: `${value} (${visibility}, from ${source})`,
    }),
  );
  return {
    key: 'Operating system',
    value: i.osType,
    children: [
      { key: 'image', value: i.osImage },
      ...(i.osImageFormat === null ? [] : [{ key: 'image format', value: i.osImageFormat }]),
      ...(i.osImageChecksum === null ? [] : [{ key: 'image checksum', value: i.osImageChecksum }]),
      { key: 'personalization package', value: i.personalizationPackage },
      ...(i.personalizationChecksum === null
        ? []
        : [{ key: 'package checksum', value: i.personalizationChecksum }]),
      { key: 'hooks', value: countNames(i.hookNames) },
      { key: 'safe install', value: i.safeInstall },
      ...(i.applianceInForce === undefined
        ? []
        : [{ key: 'appliance', value: describeAppliance(i.applianceInForce) }]),
      { key: 'install state', value: i.installState },
      ...(i.installTimeoutS === null
        ? []
        : [
            {
              key: 'limit for installations',
              value: i.installTimeoutS === 0 ? 'none' : `${i.installTimeoutS} s`,
            },
          ]),
      ...(i.profiles.length > 0 ? [{ key: 'profiles', value: i.profiles.join(', ') }] : []),
      { key: 'OS parameters', children: describeSettings(i.osParameters) },
      { key: 'private OS parameters', children: describeSettings(i.osParametersPrivate) },
      { key: 'secret OS parameters', value: i.secretNames.join(', ') },
      ...(effective.length === 0 ? [] : [{ key: 'in force', children: effective }]),
      ...(Object.keys(i.installParameters).length === 0
        ? []
        : [
            { key: 'install parameters', children: describeSettings(i.installParameters) },
            { key: 'success of a medium', value: i.mediumSuccess },
          ]),
    ],
  };
}

/** `mini (from os debian)`; nobody says so of the usual one. */
function describeAppliance({ name, source }: ApplianceInForce): string {
  return source === 'default' ? name : `${name} (from ${source})`;
}

function describeChannel(i: InstanceInfo): OutlineEntry {
  return {
    key: 'Channel',
    value: i.communication ? 'on' : 'off (on during installations)',
    children: [
      { key: 'address', value: i.channel.ip },
      { key: 'MAC', value: i.channel.mac },
      { key: 'TAP', value: i.running?.tap ?? null },
      { key: 'dialects', value: i.dialects.join(', ') },
      { key: 'session tokens', value: i.metadataToken },
      { key: 'seed disk', value: i.seedDisk },
      {
        key: 'cloud-init datasource',
        value: `${i.cloudInit.datasource ?? 'none'} (${i.cloudInit.reason})`,
      },
      {
        key: 'documents',
        value: [
          ...(i.hasUserData ? ['user data'] : []),
          ...(i.hasVendorData ? ['vendor data'] : []),
          ...(i.hasNetworkConfig ? ['network config'] : []),
          ...(i.sshKeys.length > 0 ? [`${i.sshKeys.length} SSH key(s)`] : []),
        ].join(', '),
      },
      ...describeSsh(i.ssh),
      ...(Object.keys(i.metadata).length === 0
        ? []
        : [{ key: 'metadata', children: describeSettings(i.metadata) }]),
    ],
  };
}

function describeSsh(ssh: SshInfo): readonly OutlineEntry[] {
  const keys = (key: string, texts: readonly string[]): OutlineEntry[] =>
    texts.map((text) => ({ key, value: formatFingerprint(text) }));
  return [
    ...(ssh.user === null ? [] : [{ key: 'SSH login', value: ssh.user }]),
    ...keys('SSH host key', ssh.hostKeys),
    ...keys('SSH host key, refused', refusedHostKeys(ssh)),
  ];
}

function describeHardware(i: InstanceInfo): OutlineEntry {
  return {
    key: 'Hardware',
    children: [
      { key: 'VCPUs', value: i.beparams.vcpus },
      { key: 'memory', value: formatMiB(i.beparams.memoryMiB, 'h') },
      {
        key: 'disks',
        value: i.diskTemplate,
        children: i.disks.map((disk, index) => ({
          key: `disk/${index}`,
          value: `${formatMiB(disk.sizeBytes / MIB, 'h')} (${formatBytes(disk.sizeBytes)})${disk.name === null ? '' : `, name ${disk.name}`}, UUID ${disk.uuid}${disk.vg === undefined ? '' : `, volume group ${disk.vg}`}${disk.pool === undefined ? '' : `, thin pool ${disk.pool}`}${disk.dataset === undefined ? '' : `, ZFS dataset ${disk.dataset}`}`,
        })),
      },
      ...(i.snapshots.length === 0
        ? []
        : [{ key: 'snapshots', value: i.snapshots.map(({ name }) => name).join(', ') }]),
      {
        key: 'NICs',
        ...(i.running !== null && i.partsOfRun && { value: 'as shown from the next start on' }),
        children: i.nics.map((nic, index) => ({
          key: `nic/${index}`,
          value: [
            `MAC ${nic.mac}`,
            `mode ${nic.mode}`,
            ...(nic.link === null ? [] : [`link ${nic.link}`]),
            ...(nic.networkName === undefined ? [] : [`network ${nic.networkName}`]),
            ...(nic.ip === null ? [] : [`IP ${nic.ip}`]),
            ...describeNetwork(nic.network),
            ...(nic.name === null ? [] : [`name ${nic.name}`]),
          ].join(', '),
        })),
      },
    ],
  };
}

function describeNetwork(network: NicNetwork | null): readonly string[] {
  if (network === null) return ['DHCP'];
  const { addresses, gateways, nameservers, search, routes, mtu } = network;
  return [
    addresses.length === 0 ? 'DHCP' : `addresses ${addresses.join(' ')}`,
    ...(gateways.length > 0 ? [`gateway ${gateways.join(' ')}`] : []),
    ...(nameservers.length > 0 ? [`DNS ${nameservers.join(' ')}`] : []),
    ...(search.length > 0 ? [`search ${search.join(' ')}`] : []),
    ...routes.map(({ to, via }) => `route ${to} via ${via}`),
    ...(mtu === null ? [] : [`MTU ${mtu}`]),
  ];
}

function describeInstall(install: InstallRecord): OutlineEntry {
  const tookMs = install.endedAtMs === null ? null : install.endedAtMs - install.startedAtMs;
  return {
    key: 'Last installation',
    value: `${install.state}${tookMs === null ? '' : ` after ${formatDuration(tookMs)}`} (job ${install.jobId})`,
    children: [
      { key: 'started', value: formatTime(install.startedAtMs) },
      {
        key: 'stages',
        children: install.stages.map(({ stage, durationMs, summary }) => ({
          key: stage,
          value: `${formatDuration(durationMs)}${summary === '' ? '' : `, ${summary}`}`,
        })),
      },
      ...(install.state === 'installing' ? [{ key: 'stage at hand', value: install.stage }] : []),
      ...(install.error === null
        ? []
        : [
            { key: 'failed in', value: install.stage },
            { key: 'error', value: `${install.error.code}: ${install.error.message}` },
            ...(install.error.hint === null ? [] : [{ key: 'hint', value: install.error.hint }]),
          ]),
      { key: 'log', value: install.logFile },
    ],
  };
}

function describeSettings(settings: Readonly<Record<string, unknown>>): readonly OutlineEntry[] {
  return Object.entries(settings)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => ({ key, value: typeof value === 'number' ? value : String(value) }));
}

/** `2 (10-a.yaml, 20-b.yaml)` */
function countNames(names: readonly string[]): string {
  return names.length === 0 ? '0' : `${names.length} (${names.join(', ')})`;
}
