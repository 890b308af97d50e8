import { isDeepStrictEqual } from 'node:util';
import { type InstanceRecord, MAX_PORTS } from '#shared/contract/instance.ts';
import { asItRuns } from '#shared/contract/settings-of-run.ts';
import { AppError, isAppError, messageOf } from '#shared/errors/app-error.ts';
import type { Machine } from '../vmm/machine.ts';
import type { InstanceRunner } from '../instances/instance-runner.ts';
import { settingsOfStart, withSettingsOfRun } from '../instances/view/settings-of-run.ts';
import type { JobContext } from '../jobs/job-handler.ts';
import type { InstanceRepository } from '../records/instance-repository.ts';
import type { Parts } from './change-running-parts.ts';

interface Dependencies {
  readonly instances: Pick<InstanceRepository, 'update'>;
  readonly runner: Pick<InstanceRunner, 'running' | 'plug' | 'unplug'>;
}
type Part = InstanceRecord['nics' | 'disks'][number];

/**
 * Gives new parts of a running instance a port that no part has or had in this run, if one is free.
 * Pure.
 */
export function givePorts(instance: InstanceRecord, planned: Parts): Parts {
  const former = [...partsOfKind(instance), ...partsOfKind(asItRuns(instance))];
  const known = new Set(former.map(({ uuid }) => uuid));
  const taken = new Set(former.map(({ port }) => port));
  const withPort = <Kind extends Part>(part: Kind): Kind => {
    if (known.has(part.uuid)) return part;
    const port = Array.from({ length: MAX_PORTS }, (_, at) => at).find((at) => !taken.has(at));
    if (port === undefined) return part;
    taken.add(port);
    return { ...part, port };
  };
  return { nics: planned.nics.map(withPort), disks: planned.disks.map(withPort) };
}

/**
 * Corrects the record by the parts that QEMU really has in its ports. They differ if the daemon was
 * killed, or if a guest released a part late. Does nothing without a running QEMU process.
 * @throws AppError QMP
 */
export async function settlePorts(
  instance: InstanceRecord,
  machine: Pick<Machine, 'plugged'> | undefined,
  instances: Dependencies['instances'],
): Promise<InstanceRecord> {
  const all = [...partsOfKind(instance), ...partsOfKind(asItRuns(instance))];
  if (machine === undefined || all.every(({ port }) => port === undefined)) return instance;
  const plugged = await machine.plugged();
  const isThere = ({ uuid, port }: Part, ofRun: readonly Part[]): boolean =>
    port === undefined ? ofRun.some((part) => part.uuid === uuid) : plugged.has(uuid);
  const settled = (current: InstanceRecord): InstanceRecord => withRun(current, isThere);
  if (isDeepStrictEqual(settled(instance), instance)) return instance;
  return instances.update(instance.uuid, settled);
}

/**
 * Attaches added parts to the running QEMU process and detaches removed NICs. The record must be
 * committed before. Parts that cannot be attached wait for the next start.
 */
export async function plugParts(
  changed: InstanceRecord,
  { instances, runner }: Dependencies,
  { report }: Pick<JobContext, 'report'>,
): Promise<InstanceRecord> {
  const kept = runner.running(changed.uuid);
  if (kept === undefined || changed.partsOfRun === null) return changed;
  const former = asItRuns(changed);
  const had = new Set(partsOfKind(former).map(({ uuid }) => uuid));
  const has = new Set(partsOfKind(changed).map(({ uuid }) => uuid));
  for (const [kind, parts] of [
    ['disk', changed.disks],
    ['NIC', changed.nics],
  ] as const)
    // prettier-ignore
    for (const [index, part] of parts.entries()) {
      if (had.has(part.uuid) || part.port === undefined) continue;
      try {
        await runner.plug(changed, part.uuid);
        report.log(`${kind} ${index} is attached to the running instance`);
      } catch (error) {
        if (!isAppError(error)) throw error;
        report.log(`${kind} ${index} was not attached to the running instance: ${messageOf(error)}`, 'warn');
      }
    }
  for (const { uuid, port, mac } of former.nics) {
    if (has.has(uuid) || port === undefined) continue;
    if (await runner.unplug(changed.uuid, uuid))
      report.log(`the NIC ${mac} is detached from the instance`);
    else
      report.log(
        `the guest does not release the NIC ${mac}: the NIC keeps its address until the guest releases it or restarts`,
        'warn',
      );
  }
  return settlePorts(changed, kept.machine, instances);
}

/**
 * Detaches a disk from a running instance before its file is removed.
 * @throws AppError INSTANCE_STATE: the guest does not release it; nothing was changed
 */
export async function unplugDisk(
  instance: InstanceRecord,
  uuid: string,
  dependencies: Dependencies,
): Promise<InstanceRecord> {
  const machine = dependencies.runner.running(instance.uuid)?.machine;
  if (machine === undefined || (await dependencies.runner.unplug(instance.uuid, uuid)))
    return settlePorts(instance, machine, dependencies.instances);
  throw new AppError(
    'INSTANCE_STATE',
    `the guest of '${instance.name}' does not release the disk: it stays attached`,
    {
      hint: `Unmount it in the guest, or stop the instance first: gnt-instance shutdown ${instance.name}`,
    },
  );
}

function partsOfKind({ nics, disks }: Parts): readonly Part[] {
  return [...nics, ...disks];
}

function withRun(
  instance: InstanceRecord,
  isThere: (part: Part, ofRun: readonly Part[]) => boolean,
): InstanceRecord {
  const former = asItRuns(instance);
  const merge = <Kind extends Part>(now: readonly Kind[], ofRun: readonly Kind[]): Kind[] =>
    [
      ...now.map((part) => ofRun.find(({ uuid }) => uuid === part.uuid) ?? part),
      ...ofRun.filter(({ uuid }) => now.every((part) => part.uuid !== uuid)),
    ].filter((part) => isThere(part, ofRun));
  return withSettingsOfRun(instance, {
    ...settingsOfStart(former),
    nics: merge(instance.nics, former.nics),
    disks: merge(instance.disks, former.disks),
  });
}
