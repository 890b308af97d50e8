import type { InstanceInfo } from '#shared/contract/instance.ts';
import { refusedHostKeys } from '#shared/contract/refused-host-keys.ts';
import { asItRuns, describeWaiting, waitingSettings } from '#shared/contract/settings-of-run.ts';
import { supplySecrets } from '#shared/contract/supply-secrets.ts';
import type { OutlineEntry } from './outline.ts';

/** A state of an instance that needs an operator's action. */
interface Concern {
  readonly key: string;
  readonly value: string;
  /** A command that shows or repairs it. */
  readonly step: string;
}

/** Returns the states of an instance that need attention, the most urgent first. Pure. */
export function listAttention(instance: InstanceInfo): readonly OutlineEntry[] {
  return findConcerns(instance).map(({ key, value }) => ({ key, value }));
}

/** Returns the command to run next: for the most urgent state, else to use the instance. Pure. */
export function chooseNextStep(instance: InstanceInfo): string {
  const [first] = findConcerns(instance);
  if (first !== undefined) return first.step;
  const { name, running } = instance;
  if (running === null) return `gnt-instance startup ${name}`;
  return asItRuns(instance).communication
    ? `gnt-instance ssh ${name}`
    : `gnt-instance console ${name}`;
}

function findConcerns(i: InstanceInfo): readonly Concern[] {
  return [...ofState(i), ...ofGuest(i), ...ofChanges(i)];
}

function ofState({ name, status, explanation, install, running }: InstanceInfo): Concern[] {
  const error = install?.error;
  return [
    ...(status.startsWith('ERROR_')
      ? [{ key: status, value: explanation, step: stepOfStatus(name, status) }]
      : []),
    ...(error == null
      ? []
      : [
          {
            key: 'installation failed',
            value: `${error.code}: ${error.message}`,
            step: `gnt-instance log ${name}`,
          },
        ]),
    ...(running?.halt
      ? [{ key: 'guest paused', value: running.halt.reason, step: 'gnt-node doctor' }]
      : []),
  ];
}

function stepOfStatus(name: string, status: string): string {
  if (status === 'ERROR_down') return `gnt-instance startup ${name}`;
  if (status === 'ERROR_up') return `gnt-instance shutdown ${name}`;
  return status.startsWith('ERROR_node') ? 'gnt-node list' : 'gnt-cluster verify';
}

function ofGuest({ name, boot, lifecycle }: InstanceInfo): Concern[] {
  const isFaulty = boot?.status === 'error' || boot?.status === 'degraded';
  const isStranded = lifecycle?.state === 'stranded' || lifecycle?.state === 'failed';
  return [
    ...(isFaulty
      ? [
          {
            key: `cloud-init ${boot.status}`,
            value: [...boot.errors, ...boot.recoverableErrors].join('; '),
            step: `gnt-instance exec ${name} cloud-init status --long`,
          },
        ]
      : []),
    ...(lifecycle?.state === 'booting' && lifecycle.reason !== null
      ? [
          {
            key: 'run lists not reported',
            value: lifecycle.reason,
            step: `gnt-instance console ${name}`,
          },
        ]
      : []),
    ...(isStranded
      ? [
          {
            key: `run lists ${lifecycle.state}`,
            value: lifecycle.reason ?? '',
            step: `gnt-instance audit ${name}`,
          },
        ]
      : []),
  ];
}

function ofChanges(instance: InstanceInfo): Concern[] {
  const { name, ssh, running } = instance;
  const waiting = running === null ? [] : waitingSettings(instance);
  const refused = refusedHostKeys(ssh).length;
  const bootEnv = running?.bootEnv;
  const ofBoot = (bootEnv?.lost ?? []).flatMap(({ secrets }) => secrets);
  const lost = [...new Set([...(running?.lostSecrets ?? []), ...ofBoot])];
  return [
    ...(bootEnv?.failure
      ? [
          {
            key: 'boot environment not rendered',
            value: `${bootEnv.failure.code}: ${bootEnv.failure.message}`,
            step: `gnt-bootenv render ${bootEnv.name} ${name}`,
          },
        ]
      : []),
    ...(lost.length === 0
      ? []
      : [
          {
            key: 'secrets lost',
            value: `the guest cannot read ${lost.join(', ')}`,
            step: supplySecrets(name, lost),
          },
        ]),
    ...(refused === 0
      ? []
      : [
          {
            key: 'SSH host keys changed',
            value: `${refused} not trusted`,
            step: `gnt-instance modify --accept-host-keys ${name}`,
          },
        ]),
    ...(waiting.length === 0
      ? []
      : [
          {
            key: 'restart needed',
            value: describeWaiting(waiting),
            step: `gnt-instance reboot ${name}`,
          },
        ]),
  ];
}
