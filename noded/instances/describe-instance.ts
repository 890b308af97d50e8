import type { ApplianceInForce } from '#shared/contract/appliance-choice.ts';
import {
  lifecycleInfo,
  type LifecycleInfo,
  type LifecycleRecord,
  type RunListName,
  type RunLists,
} from '#shared/contract/lifecycle.ts';
import type {
  GuestReport,
  InstanceInfo,
  InstanceRecord,
  InstanceStatus,
  RunningBootEnv,
} from '#shared/contract/instance.ts';
import { redactMedium, redactSource } from '#shared/contract/redact-source.ts';
import { asItRuns } from '#shared/contract/settings-of-run.ts';
import { supplySecrets } from '#shared/contract/supply-secrets.ts';
import type { GuestHalt } from '../vmm/machine.ts';
import { describeSsh } from './reports/host-keys.ts';
import { explainHalt } from './machines/explain-halt.ts';
import { explainDatasource, hasSeedDisk } from './view/cloud-init-datasource.ts';
import { awaitedSecrets } from './machines/plan-starts.ts';
import { describeParameters, type OsParameters } from './parameters/os-parameters.ts';

export interface RunningFacts {
  readonly pid: number;
  readonly accelerator: 'kvm' | 'tcg';
  readonly startedAtMs: number;
  readonly tap: string | null;
  readonly readyAtMs: number | null;
  readonly halt: GuestHalt | null;
  readonly bootEnv: RunningBootEnv | null;
  readonly lostSecrets: string[];
}

/** A running instance and its guest's report of the present boot. */
export interface RunningInstance {
  readonly machine: RunningFacts;
  readonly report: GuestReport | null;
}

/**
 * Returns an instance as an API may show it: private values replaced, secrets by name only. Pure.
 */
export function describeInstance(
  instance: InstanceRecord,
  running: RunningInstance | null,
  inForce: { readonly parameters: OsParameters; readonly appliance: ApplianceInForce },
  status = statusOf(instance, running?.machine ?? null),
): InstanceInfo {
  const { osParametersPrivate, userData, vendorData, networkConfig, hooks, hostKeys, ...rest } =
    instance;
  const { runLists, lifecycle, namedAfterJob, ...shown } = rest;
  // Not shown: only the node decides which users may see a job.
  void namedAfterJob;
  return {
    ...shown,
    osImage: redactNullable(shown.osImage),
    personalizationPackage: redactNullable(shown.personalizationPackage),
    installParameters: redactMedium(shown.installParameters),
    osParametersPrivate: redactAll(osParametersPrivate),
    osParametersEffective: describeParameters(inForce.parameters),
    applianceInForce: inForce.appliance,
    ...(runLists && { runListNames: nameScripts(runLists) }),
    lifecycle: describeLifecycle(lifecycle),
    hookNames: hooks.map(({ name }) => name),
    hasUserData: userData !== null,
    hasVendorData: vendorData !== null,
    hasNetworkConfig: networkConfig !== null,
    status,
    running: running?.machine ?? null,
    boot: running?.report?.boot ?? null,
    ssh: describeSsh({ ...shown, hostKeys }, running?.report ?? null),
    seedDisk: hasSeedDisk(instance),
    cloudInit: explainDatasource(instance),
    partsOfRun: running && describeRunSettings(instance),
    explanation: explain(instance, status, running?.machine ?? null),
  };
}

/** Returns null if the next start changes nothing. */
function describeRunSettings(instance: InstanceRecord): InstanceInfo['partsOfRun'] {
  const run = asItRuns(instance);
  return (
    instance.partsOfRun && {
      ...instance.partsOfRun,
      seedDisk: hasSeedDisk(run),
      cloudInit: explainDatasource(run),
    }
  );
}

function nameScripts(lists: RunLists): Record<RunListName, string[]> {
  const names = (list: RunListName): string[] => lists[list].map(({ name }) => name);
  return {
    boot: names('boot'),
    operational: names('operational'),
    decommission: names('decommission'),
  };
}

/** Returns null without run lists; cloud-init's verdict then describes the boot. */
export function describeLifecycle(record: LifecycleRecord | null): LifecycleInfo | null {
  return record && lifecycleInfo.parse(record);
}

function redactNullable(source: string | null): string | null {
  return source === null ? null : redactSource(source);
}

/** Returns the names with their values replaced. */
export function redactAll(values: Record<string, string>): Record<string, '<redacted>'> {
  return Object.fromEntries(Object.keys(values).map((name) => [name, '<redacted>' as const]));
}

export function statusOf(
  instance: Pick<InstanceRecord, 'installState' | 'adminState'>,
  running: { readonly halt?: GuestHalt | null | undefined } | null,
): InstanceStatus {
  if (instance.installState === 'installing') return 'installing';
  if (instance.installState === 'failed') return 'install_failed';
  if (running !== null && instance.adminState === 'down') return 'ERROR_up';
  if (running !== null) return running.halt == null ? 'running' : 'paused';
  return instance.adminState === 'up' ? 'ERROR_down' : 'ADMIN_down';
}

function explain(
  instance: InstanceRecord,
  status: InstanceStatus,
  running: RunningFacts | null,
): string {
  const { name, install } = instance;
  switch (status) {
    case 'running':
      return 'running';
    case 'paused':
      return explainHalt(instance, running?.halt);
    case 'installing':
      return `being installed by job ${install?.jobId ?? '?'}${install?.stage ? `, at stage ${install.stage}` : ''}: gnt-job watch ${install?.jobId ?? '?'}`;
    case 'install_failed': {
      const at = install?.stage ? ` at stage ${install.stage}` : '';
      const why = install?.error ? `: ${install.error.message}` : '';
      return `the installation failed${at}${why}. Read gnt-instance log ${name}, then run gnt-instance reinstall ${name} or gnt-instance remove ${name}`;
    }
    case 'ADMIN_down':
      return instance.installState === 'created'
        ? `created but not installed. Install it: gnt-instance reinstall ${name}`
        : `stopped. Start it: gnt-instance startup ${name}`;
    case 'ERROR_down': {
      const secrets = awaitedSecrets(instance);
      if (secrets.length > 0)
        return `should run but does not: it needs its secrets. ${supplySecrets(name, secrets)}`;
      return `should run but does not: the guest powered off or its QEMU process ended. Start it: gnt-instance startup ${name}`;
    }
    case 'ERROR_nodedown':
      return `node ${instance.primaryNode} does not answer: check gnt-noded there. This is the cluster's record, not the present state.`;
    case 'ERROR_nodefails':
      return `node ${instance.primaryNode} answers but cannot report the state: check gnt-node info ${instance.primaryNode} and the log of gnt-noded there. This is the cluster's record, not the present state.`;
    case 'ERROR_nodeoffline':
      return `node ${instance.primaryNode} is marked offline. When it is back: gnt-node modify --offline no ${instance.primaryNode}. This is the cluster's record, not the present state.`;
    case 'ERROR_up':
      return `runs but should not. Stop it: gnt-instance shutdown ${name}`;
  }
}
