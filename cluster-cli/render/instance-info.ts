import type { ApplianceInForce } from '#shared/contract/appliance-choice.ts';
import type { BootReport } from '#shared/contract/boot-report.ts';
import type { LifecycleInfo } from '#shared/contract/lifecycle.ts';
import type { SshInfo } from '#shared/contract/host-keys.ts';
import { refusedHostKeys } from '#shared/contract/refused-host-keys.ts';
import type { InstanceInfo, InstallRecord, RunningBootEnv } from '#shared/contract/instance.ts';
import type { Provenance } from '#shared/contract/provenance.ts';
import { asItRuns } from '#shared/contract/settings-of-run.ts';
import type { NicNetwork } from '#shared/contract/static-network.ts';
import { MIB } from '#shared/units/bytes.ts';
import { formatBytes, formatDuration, formatMiB, formatTime } from './format.ts';
import { formatFingerprint } from './host-keys.ts';
import { chooseNextStep, listAttention } from './instance-attention.ts';
import { mergeOutlines, type OutlineEntry, renderOutline, shorten } from './outline.ts';

/**
 * Returns the lines of `gnt-instance info`: state, concerns, next step and parameters. The input
 * has no private values, and only names of secrets.
 * @param isWhole also parameters with their defaults, IDs and times
 */
export function renderInstanceInfo(instance: InstanceInfo, isWhole = false): readonly string[] {
  const entries = describeInstance(instance);
  return renderOutline(isWhole ? entries : shorten(entries));
}

function describeInstance(i: InstanceInfo): readonly OutlineEntry[] {
  const attention = listAttention(i);
  return [
    { key: 'Instance name', value: i.name },
    { key: 'State', value: i.explanation },
    { key: 'Status', value: `${i.status} (configured to be ${i.adminState})` },
    ...(attention.length === 0 ? [] : [{ key: 'Needs attention', children: attention }]),
    { key: 'Next step', value: chooseNextStep(i) },
    { key: 'UUID', value: i.uuid, isMore: true },
    { key: 'Instance id', value: i.instanceId, isMore: true },
    { key: 'Serial number', value: i.serialNo, isMore: true },
    { key: 'Creation time', value: formatTime(i.createdAtMs), isMore: true },
    { key: 'Modification time', value: formatTime(i.modifiedAtMs), isMore: true },
    { key: 'Primary node', value: i.primaryNode },
    {
      key: 'Autostart',
      value: describeAutostart(i.autostart),
      isMore: i.autostart.boot && i.autostart.restarts === 0,
    },
    { key: 'Tags', value: i.tags.join(', '), isMore: i.tags.length === 0 },
    describeRun(i),
    ...(i.lifecycle == null ? [] : [describeLifecycle(i.lifecycle)]),
    describeOs(i),
    ...(i.running === null
      ? describeSettingsOfRun(i)
      : mergeOutlines(describeSettingsOfRun(asItRuns(i)), describeSettingsOfRun(i))),
    ...(i.install ? [describeInstall(i.install)] : []),
  ];
}

/** Describes the settings that a QEMU process has from its start. */
function describeSettingsOfRun(i: InstanceInfo): readonly OutlineEntry[] {
  return [
    ...(i.bootEnv === null ? [] : [{ key: 'Boot environment', value: i.bootEnv }]),
    describeChannel(i),
    describeHardware(i),
    { ...describeHypervisor(i), isMore: Object.keys(i.hvparams).length === 0 },
  ];
}

function describeHypervisor({ hvparams }: InstanceInfo): OutlineEntry {
  return { key: 'Hypervisor', value: 'kvm', children: describeSettings(hvparams) };
}

function describeAutostart(settings: InstanceInfo['autostart']): string {
  const { boot, priority, delayS, restarts, lostSecrets } = settings;
  const order = `priority ${priority}, delay ${delayS} s`;
  return [
    boot ? `after a reboot of the node, ${order}` : 'not after a reboot of the node',
    `${restarts} restarts after crashes`,
    ...(lostSecrets === 'wait' ? ['waits for lost secrets'] : []),
  ].join('; ');
}

function describeRun({ running, boot }: InstanceInfo): OutlineEntry {
  if (running === null) return { key: 'Running', value: false };
  return {
    key: 'Running',
    value: `yes, since ${formatTime(running.startedAtMs)}`,
    children: [
      { key: 'accelerator', value: running.accelerator },
      { key: 'QEMU process', value: running.pid, isMore: true },
      ...(running.halt
        ? [
            {
              key: 'guest paused',
              value: `${running.halt.reason}, since ${formatTime(running.halt.sinceMs)}`,
            },
          ]
        : []),
      {
        key: 'guest ready',
        value:
          running.readyAtMs === null
            ? 'not reported yet'
            : `${formatTime(running.readyAtMs)}, ${formatDuration(running.readyAtMs - running.startedAtMs)} after its start`,
      },
      ...(running.bootEnv == null ? [] : [describeBootEnv(running.bootEnv)]),
      ...(boot === null ? [] : [describeBoot(boot)]),
    ],
  };
}

/** Describes the boot environment of this run, and its differences from the record. */
function describeBootEnv({ name, failure, lost }: RunningBootEnv): OutlineEntry {
  return {
    key: 'boot environment',
    value: failure === null ? name : `${name}, with its former files`,
    children: [
      ...(failure === null
        ? []
        : [{ key: 'not rendered', value: `${failure.code}: ${failure.message}` }]),
      ...lost.map(({ path, secrets }) => ({
        key: 'not served',
        value: `${path}, because the secret ${secrets.join(', ')} is lost`,
      })),
    ],
  };
}

/** Describes the report of cloud-init, as `cloud-init status --long` in the guest. */
function describeBoot(boot: BootReport): OutlineEntry {
  return {
    key: 'cloud-init',
    value: boot.stage === null ? boot.status : `${boot.status}, at ${boot.stage}`,
    children: [
      ...boot.errors.map((text) => ({ key: 'error', value: text })),
      ...boot.recoverableErrors.map((text) => ({ key: 'recoverable error', value: text })),
      ...boot.stages.map(({ name, seconds }) => ({
        key: name,
        value: `${seconds.toFixed(1)} s`,
        isMore: true,
      })),
    ],
  };
}

/** Describes the state of the run lists, in this run or at the end of the last run. */
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
      { key: 'run', value: run, isMore: true },
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
      { key: 'image format', value: i.osImageFormat, isMore: true },
      { key: 'image checksum', value: i.osImageChecksum, isMore: true },
      {
        key: 'personalization package',
        value: i.personalizationPackage,
        isMore: i.personalizationPackage === null,
      },
      { key: 'package checksum', value: i.personalizationChecksum, isMore: true },
      { key: 'hooks', value: countNames(i.hookNames), isMore: i.hookNames.length === 0 },
      { key: 'safe install', value: i.safeInstall, isMore: i.safeInstall },
      ...(i.applianceInForce === undefined
        ? []
        : [
            {
              key: 'appliance',
              value: describeAppliance(i.applianceInForce),
              isMore: i.applianceInForce.source === 'default',
            },
          ]),
      {
        key: 'install state',
        value: i.installState,
        isMore: i.installState === 'installed',
      },
      ...(i.installTimeoutS === null
        ? []
        : [
            {
              key: 'installation timeout',
              value: i.installTimeoutS === 0 ? 'none' : `${i.installTimeoutS} s`,
            },
          ]),
      ...(i.profiles.length > 0 ? [{ key: 'profiles', value: i.profiles.join(', ') }] : []),
      describeParameters('OS parameters', i.osParameters),
      describeParameters('private OS parameters', i.osParametersPrivate),
      {
        key: 'secret OS parameters',
        value: i.secretNames.join(', '),
        isMore: i.secretNames.length === 0,
      },
      { key: 'effective OS parameters', children: effective, isMore: true },
      ...(Object.keys(i.installParameters).length === 0
        ? []
        : [
            { key: 'install parameters', children: describeSettings(i.installParameters) },
            { key: 'medium success', value: i.mediumSuccess, isMore: true },
          ]),
    ],
  };
}

/** Returns `mini (from os debian)`, or the name alone for the default appliance. */
function describeAppliance({ name, source }: ApplianceInForce): string {
  return source === 'default' ? name : `${name} (from ${source})`;
}

function describeChannel(i: InstanceInfo): OutlineEntry {
  const documents = [
    ...(i.hasUserData ? ['user data'] : []),
    ...(i.hasVendorData ? ['vendor data'] : []),
    ...(i.hasNetworkConfig ? ['network config'] : []),
    ...(i.sshKeys.length > 0 ? [`${i.sshKeys.length} SSH key(s)`] : []),
  ];
  return {
    key: 'Channel',
    value: i.communication ? 'on' : 'off (on during installations)',
    children: [
      { key: 'address', value: i.channel.ip },
      { key: 'MAC', value: i.channel.mac, isMore: true },
      { key: 'TAP', value: i.running?.tap ?? null, isMore: true },
      { key: 'dialects', value: i.dialects.join(', '), isMore: i.dialects.length === 4 },
      {
        key: 'session tokens',
        value: i.metadataToken,
        isMore: i.metadataToken === 'optional',
      },
      { key: 'seed disk', value: i.seedDisk, isMore: true },
      {
        key: 'cloud-init datasource',
        value: `${i.cloudInit.datasource ?? 'none'} (${i.cloudInit.reason})`,
        isMore: true,
      },
      {
        key: 'documents',
        value: documents.join(', '),
        isMore: documents.length === 0,
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
    ...keys('SSH host key', ssh.hostKeys).map((entry) => ({ ...entry, isMore: true })),
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
        children: i.nics.map((nic, index) => ({
          key: `nic/${index}`,
          value: [
            `MAC ${nic.mac}`,
            `mode ${nic.mode}`,
            ...(nic.link === null ? [] : [`link ${nic.link}`]),
            ...(nic.networkName === undefined ? [] : [`network ${nic.networkName}`]),
            ...(nic.reach === undefined ? [] : [`reach ${nic.reach}`]),
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
      { key: 'started', value: formatTime(install.startedAtMs), isMore: true },
      {
        key: 'stages',
        isMore: install.state === 'success',
        children: install.stages.map(({ stage, durationMs, summary }) => ({
          key: stage,
          value: `${formatDuration(durationMs)}${summary === '' ? '' : `, ${summary}`}`,
        })),
      },
      ...(install.state === 'installing' ? [{ key: 'current stage', value: install.stage }] : []),
      ...(install.error === null
        ? []
        : [
            { key: 'failed in', value: install.stage },
            { key: 'error', value: `${install.error.code}: ${install.error.message}` },
            ...(install.error.hint === null ? [] : [{ key: 'hint', value: install.error.hint }]),
          ]),
      ...(install.provenance ? [describeProvenance(install.provenance)] : []),
      { key: 'log', value: install.logFile, isMore: install.state === 'success' },
    ],
  };
}

function describeProvenance(provenance: Provenance): OutlineEntry {
  const { imageChecksum, imageKey, osDigest, applianceDigest } = provenance;
  return {
    key: 'provenance',
    isMore: true,
    children: [
      { key: 'image', value: imageChecksum },
      { key: 'image signed by', value: imageKey },
      { key: 'OS definition', value: osDigest },
      { key: 'appliance', value: applianceDigest },
    ],
  };
}

/** Describes parameters. A short outline omits an empty list. */
function describeParameters(
  key: string,
  parameters: Readonly<Record<string, unknown>>,
): OutlineEntry {
  const children = describeSettings(parameters);
  return { key, children, isMore: children.length === 0 };
}

function describeSettings(settings: Readonly<Record<string, unknown>>): readonly OutlineEntry[] {
  return Object.entries(settings)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => ({ key, value: typeof value === 'number' ? value : String(value) }));
}

/** Returns `2 (10-a.yaml, 20-b.yaml)`. */
function countNames(names: readonly string[]): string {
  return names.length === 0 ? '0' : `${names.length} (${names.join(', ')})`;
}
