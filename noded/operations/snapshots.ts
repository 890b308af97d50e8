import { randomUUID } from 'node:crypto';
import {
  type InstanceDisk,
  type InstanceRecord,
  type InstanceSnapshot,
  MAX_SNAPSHOTS,
} from '#shared/contract/instance.ts';
import type { OpcodeOf } from '#shared/contract/opcode.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { explainDatasource } from '../instances/view/cloud-init-datasource.ts';
import type { JobContext, JobHandler } from '../jobs/job-handler.ts';
import { refuseUnfinished } from './copy-instance.ts';
import type { OperationDependencies } from './operation-dependencies.ts';

type Dependencies = Pick<
  OperationDependencies,
  'instances' | 'disks' | 'snapshots' | 'runner' | 'clock'
>;

export function takeSnapshotHandler({
  instances,
  snapshots,
  runner,
  clock,
}: Dependencies): JobHandler<OpcodeOf<'INSTANCE_SNAPSHOT'>> {
  return {
    prepare: async ({ name, snapshot, copy }) => {
      const instance = await instances.findByName(name);
      const installState = refuseUnfinished(instance);
      refuseName(instance, snapshot);
      refuseHalted(instance, runner.running(instance.uuid)?.machine.halt ?? null);
      if (!runner.isRunning(instance.uuid)) await runner.checkDisksUnused(instance);
      await snapshots.check(instance, copy === true);
      return async (context) => {
        const machine = runner.running(instance.uuid)?.machine;
        const { instanceId, disks, hostKeys } = instance;
        const taken: InstanceSnapshot = {
          ...{ uuid: randomUUID(), name: snapshot, takenAtMs: clock.now() },
          ...{ wasRunning: machine !== undefined, instanceId, installState, disks, hostKeys },
        };
        const { stillMs } = await snapshots.take(instance, taken.uuid, {
          ...watchOf(context),
          ...{ mayCopy: copy === true, machine },
          commit: () =>
            instances.update(instance.uuid, (current) => ({
              ...current,
              snapshots: [...current.snapshots.filter(({ uuid }) => uuid !== taken.uuid), taken],
            })),
        });
        if (machine !== undefined) {
          context.report.log(
            `the guest paused for ${Math.ceil(stillMs)} ms; the snapshot does not hold its memory, like a disk after a power cut`,
          );
        }
        return { name, snapshot, uuid: taken.uuid };
      };
    },
  };
}

export function restoreSnapshotHandler({
  instances,
  disks,
  snapshots,
  runner,
}: Dependencies): JobHandler<OpcodeOf<'INSTANCE_RESTORE'>> {
  return {
    prepare: async ({ name, snapshot: wanted }) => {
      const instance = await instances.findByName(name);
      const snapshot = findSnapshot(instance, wanted);
      refuseInstalling(instance);
      if (runner.isRunning(instance.uuid)) {
        throw new AppError('INSTANCE_STATE', `'${name}' is running: its disks cannot be restored`, {
          hint: `Stop it first: gnt-instance shutdown ${name}`,
        });
      }
      refuseOtherDisks(instance, snapshot);
      await runner.checkDisksUnused(instance);
      await disks.settle(instance);
      await snapshots.checkRestore(instance, snapshot);
      return async (context) => {
        const { report } = context;
        const restoreId = randomUUID();
        await snapshots.restore(instance, snapshot, {
          ...watchOf(context),
          restoreId,
          commit: () =>
            instances.update(instance.uuid, (current) => planRestore(current, snapshot, restoreId)),
        });
        const served = explainDatasource({ ...instance, instanceId: snapshot.instanceId });
        if (served.datasource === null && explainDatasource(instance).datasource !== null)
          report.log(`the guest finds no datasource: ${served.reason}`, 'warn');
        if (snapshot.instanceId !== instance.instanceId) {
          report.log(
            'the restored disks belong to an earlier installation; the parameters of the instance stay the present ones',
            'warn',
          );
        }
        return { name, snapshot: snapshot.name };
      };
    },
  };
}

export function removeSnapshotHandler({
  instances,
  disks,
  snapshots,
}: Dependencies): JobHandler<OpcodeOf<'INSTANCE_REMOVE_SNAPSHOT'>> {
  return {
    prepare: async ({ name, snapshot }) => {
      const instance = await instances.findByName(name);
      const { uuid } = findSnapshot(instance, snapshot);
      refuseInstalling(instance);
      await disks.settle(instance);
      return async () => {
        await snapshots.remove(instance, uuid, () =>
          instances.update(instance.uuid, (current) => ({
            ...current,
            snapshots: current.snapshots.filter((one) => one.uuid !== uuid),
          })),
        );
        return { name, snapshot };
      };
    },
  };
}

/** Reports progress, since disks are copied where blocks cannot be shared. */
function watchOf({ signal, report }: JobContext) {
  return {
    signal,
    onProgress: (done: number, total: number) => report.progress('copying disks', done, total),
  };
}

/** Restores the fields that describe the disks; all other settings stay the present ones. Pure. */
export function planRestore(
  instance: InstanceRecord,
  { disks, instanceId, installState, hostKeys }: InstanceSnapshot,
  restoreId: string,
): InstanceRecord {
  // These disks hold nothing of another installation, nor of a failed one since then.
  const isOfThese = instance.instanceId === instanceId && instance.install?.state === 'success';
  return {
    ...instance,
    ...{ disks, instanceId, installState, restoreId, partsOfRun: null, beforeReinstall: null },
    install: isOfThese ? instance.install : null,
    // An instance id without host keys would trust the first guest that reports some: keep the
    // present keys.
    hostKeys: hostKeys ?? instance.hostKeys,
  };
}

/**
 * Refuses while an installation ends: its commit may be under way, with new disks beside the old
 * ones.
 * @throws AppError INSTANCE_STATE
 */
function refuseInstalling({ name, installState, install }: InstanceRecord): void {
  if (installState !== 'installing') return;
  throw new AppError('INSTANCE_STATE', `'${name}' is being installed, its disks are in use`, {
    hint: `Wait for the job: gnt-job watch ${install?.jobId ?? 'ID'}`,
  });
}

/** @throws AppError CONFLICT, VALIDATION */
function refuseName({ name, snapshots }: InstanceRecord, snapshot: string): void {
  if (snapshots.some((one) => one.name === snapshot)) {
    throw new AppError('CONFLICT', `'${name}' already has a snapshot '${snapshot}'`, {
      hint: `Choose another name, or remove it: gnt-instance remove-snapshot ${name} ${snapshot}`,
    });
  }
  if (snapshots.length < MAX_SNAPSHOTS) return;
  throw new AppError('VALIDATION', `'${name}' has ${MAX_SNAPSHOTS} snapshots, which is the limit`, {
    hint: `List them with gnt-instance list-snapshots ${name}, and remove one.`,
  });
}

/**
 * Refuses a halted guest: a snapshot resumes the guest afterwards, and it would write to a full
 * disk.
 */
function refuseHalted({ name }: InstanceRecord, halt: { readonly reason: string } | null): void {
  if (halt === null) return;
  throw new AppError('INSTANCE_STATE', `the guest of '${name}' is paused (${halt.reason})`, {
    hint: `Show details with gnt-instance info ${name}. It resumes by itself when there is space.`,
  });
}

/** @throws AppError NOT_FOUND */
function findSnapshot({ name, snapshots }: InstanceRecord, wanted: string): InstanceSnapshot {
  const found = snapshots.find((one) => one.name === wanted);
  if (found !== undefined) return found;
  const names = snapshots.map((one) => one.name).join(', ');
  throw new AppError('NOT_FOUND', `'${name}' has no snapshot '${wanted}'`, {
    hint:
      names === ''
        ? `It has none. Take one: gnt-instance snapshot ${name} ${wanted}`
        : `It has ${names}`,
  });
}

/**
 * Refuses if disks were added, which the snapshot cannot restore, or removed, which have no place
 * to go.
 */
function refuseOtherDisks({ name, disks }: InstanceRecord, snapshot: InstanceSnapshot): void {
  const gone = missingFrom(disks, snapshot.disks);
  const added = missingFrom(snapshot.disks, disks);
  if (gone.length > 0) {
    throw new AppError(
      'INSTANCE_STATE',
      `snapshot '${snapshot.name}' of '${name}' cannot be restored: its disk ${gone.join(', ')} was removed since`,
      {
        hint: `Its data stays in the folder snapshot-${snapshot.uuid} beside the instance's disks until gnt-instance remove-snapshot`,
      },
    );
  }
  if (added.length === 0) return;
  throw new AppError(
    'INSTANCE_STATE',
    `'${name}' has other disks than snapshot '${snapshot.name}': disk ${added.join(', ')} was added since`,
    {
      hint: `Remove that disk with its data: gnt-instance modify ${name} --disk ${added.at(-1)}:remove`,
    },
  );
}

/** @returns the indices in `of` of disks that `list` lacks */
function missingFrom(list: readonly InstanceDisk[], of: readonly InstanceDisk[]): number[] {
  return of.flatMap(({ uuid }, index) => (list.some((one) => one.uuid === uuid) ? [] : [index]));
}
