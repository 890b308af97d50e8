import type { Clock } from '#shared/clock/clock.ts';
import type { Orphan } from '#shared/contract/api.ts';
import { instanceRecord, type InstanceRecord } from '#shared/contract/instance.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { parseJson } from '#shared/json/parse-json.ts';
import type { Logger } from '#shared/log/log.ts';
import type { JobContext } from '../../jobs/job-handler.ts';
import type { InstanceRepository } from '../../records/instance-repository.ts';
import type { KeptMachine, MachineKeeper } from './machine-keeper.ts';
import { powerOff } from './power-off.ts';
import type { Views } from '../view/views.ts';

export interface OrphansDependencies {
  readonly instances: Pick<InstanceRepository, 'findByUuid'>;
  readonly keeper: MachineKeeper;
  readonly views: Pick<Views, 'forRun'>;
  /** Returns whether a record's node name means this node. */
  readonly owns: (node: string) => boolean;
  readonly logger: Logger;
  readonly clock: Clock;
}

/** Manages running instances of this node without a record. */
export function createOrphans(dependencies: OrphansDependencies) {
  const { instances, keeper, views, owns, logger } = dependencies;
  const all = (): readonly KeptMachine[] => keeper.list().filter(({ isOrphan }) => isOrphan);
  /** Adopts an orphan whose record is present. @returns whether it is present */
  const takeOver = async (uuid: string): Promise<boolean> => {
    const instance = await instances.findByUuid(uuid);
    if (instance === undefined || !owns(instance.primaryNode)) return false;
    await keeper.adopt(instance, (tap, revision) => views.forRun(uuid, tap, revision));
    logger.info('machine.adopted', {
      instance: instance.name,
      machine: keeper.get(uuid)?.machine.pid,
    });
    return true;
  };
  return {
    list: (): readonly Orphan[] =>
      all().map(({ machine, instanceName, device }) => ({
        uuid: machine.uuid,
        name: instanceName,
        pid: machine.pid,
        tap: device,
      })),
    /** @param name its last name, or its UUID @throws AppError CONFLICT for an ambiguous name */
    find: (name: string): KeptMachine | undefined => {
      const found = all().filter(
        ({ machine, instanceName }) => machine.uuid === name || instanceName === name,
      );
      const exact = found.find(({ machine }) => machine.uuid === name);
      if (exact !== undefined || found.length < 2) return exact ?? found[0];
      const uuids = found.map(({ machine }) => machine.uuid);
      throw new AppError('CONFLICT', `several orphaned instances were called '${name}'`, {
        details: { uuids },
        hint: `Name one by its UUID: ${uuids.join(', ')}`,
      });
    },
    takeOver,
    /** Marks instances as orphans whose record is missing or names another node. */
    noticeLost: async (): Promise<void> => {
      for (const { machine, kind, isOrphan, instanceName } of keeper.list()) {
        if (isOrphan || kind !== 'run') continue;
        const record = await instances.findByUuid(machine.uuid);
        if (record !== undefined && owns(record.primaryNode)) continue;
        keeper.makeOrphan(machine.uuid);
        logger.error('machine.orphan', { machine: machine.uuid, instance: instanceName });
      }
    },
    /** @see powerOff */
    powerOff: (orphan: KeptMachine, timeoutS: number, context: JobContext): Promise<void> =>
      powerOff(orphan, timeoutS, dependencies, context),
    /**
     * Adopts all orphans with a record, after the store returned or a record was restored.
     * @param level of log entries for failures
     */
    takeOverAll: async (level: 'warn' | 'debug'): Promise<void> => {
      for (const { machine } of all()) {
        try {
          await takeOver(machine.uuid);
        } catch (error) {
          // One failure must not stop the others or the daemon.
          logger[level]('machine.not-taken-over', { machine: machine.uuid, err: error });
        }
      }
    },
  };
}

export type Orphans = ReturnType<typeof createOrphans>;

/**
 * Reads the copy of a record beside a QEMU process, for this node. It may be outdated, so it is
 * validated.
 * @throws AppError INSTANCE_STATE
 */
export async function readKeptRecord(
  { machine, instanceName }: KeptMachine,
  nodeName: string,
): Promise<InstanceRecord> {
  const { uuid } = machine;
  const note = await machine.readNote();
  const kept = instanceRecord.safeParse(note === undefined ? undefined : parseJson(note)).data;
  if (kept?.uuid === uuid && ['installed', 'created'].includes(kept.installState))
    return { ...kept, primaryNode: nodeName, adminState: 'up' };
  throw new AppError(
    'INSTANCE_STATE',
    `the run directory of '${instanceName}' (${uuid}) holds no usable copy of its record`,
    {
      hint: `Restore the store from a backup: the instance is then found again. Or stop and remove it: gnt-instance remove ${uuid}`,
    },
  );
}
