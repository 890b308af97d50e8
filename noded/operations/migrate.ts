import type { InstanceRecord } from '#shared/contract/instance.ts';
import { LOCAL_BOOT_ENV } from '#shared/contract/boot-objects.ts';
import type { OpcodeOf } from '#shared/contract/opcode.ts';
import { describeWaiting, waitingSettings } from '#shared/contract/settings-of-run.ts';
import { startDeadline } from '#shared/abort/deadline.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { createMigrationTargetClient } from '../cluster/migration/migration-target-client.ts';
import { cleanUpMigration } from '../cluster/migration/clean-up-migration.ts';
import { migrateInstance } from '../cluster/migration/migrate-instance.ts';
import { natureOf } from '../vmm/machine-nature.ts';
import type { Machine } from '../vmm/machine.ts';
import type { Execution, JobHandler } from '../jobs/job-handler.ts';
import {
  requireOtherNode,
  refuseInstalling,
  refuseSnapshots,
  refuseUnmovableDisks,
  sendRateOf,
} from './move.ts';
import type { OperationDependencies } from './operation-dependencies.ts';

/** Migrates a running instance. Both nodes refuse impossible migrations before anything changes. */
export function migrateInstanceHandler(
  dependencies: OperationDependencies,
): JobHandler<OpcodeOf<'INSTANCE_MIGRATE'>> {
  const { instances, lifecycles, disks } = dependencies;
  return {
    prepare: async ({ name, node: wanted, timeoutS, dataRate, cleanup }, signal) => {
      const instance = await instances.findByName(name);
      if (cleanup === true) return prepareCleanup(instance, dependencies);
      refuseUnmovableDisks(instance, dependencies);
      const { node, peers } = await requireOtherNode(name, wanted, dependencies);
      const machine = await requireMovable(instance, dependencies);
      const target = createMigrationTargetClient(peers, node);
      await target.checkMachine(instance.uuid, await natureOf(machine), signal);
      return async (context) => {
        const rate = await sendRateOf(dataRate, dependencies);
        using deadline = startDeadline(context.signal, timeoutS * 1000, () =>
          tooSlow(name, timeoutS),
        );
        await migrateInstance(
          { instance, machine },
          node,
          { ...context, signal: deadline.signal },
          {
            ...dependencies,
            ...{ target, rate, seedPathOf: (of) => disks.seedPathOf(of) },
          },
        );
        lifecycles.forget(instance.uuid);
        return { name, uuid: instance.uuid, node };
      };
    },
  };
}

/** @throws AppError INSTANCE_STATE */
async function prepareCleanup(
  instance: InstanceRecord,
  dependencies: OperationDependencies,
): Promise<Execution> {
  const { nodeName, nodes, peers } = dependencies;
  const { name, uuid } = instance;
  refuseInstalling(instance);
  const names = (await nodes.names()).filter((node) => node !== nodeName);
  const others =
    peers === null
      ? []
      : names.map((node) => [node, createMigrationTargetClient(peers, node)] as const);
  return async (context) => {
    const isRunning = await cleanUpMigration(instance, context, {
      ...dependencies,
      others: new Map(others),
    });
    return { name, uuid, node: nodeName, isRunning };
  };
}

/** @throws AppError INSTANCE_STATE, NOT_SUPPORTED */
async function requireMovable(
  instance: InstanceRecord,
  dependencies: OperationDependencies,
): Promise<Machine> {
  const { name, uuid, bootEnv, hvparams, disks, nics } = instance;
  refuseInstalling(instance);
  const kept = dependencies.runner.running(uuid);
  if (kept?.machine.isRunning() !== true || kept.isOrphan) {
    throw new AppError('INSTANCE_STATE', `instance '${name}' is not running`, {
      details: { name },
      hint: `Move a stopped instance: gnt-instance move ${name}`,
    });
  }
  if (kept.machine.halt !== null) {
    throw new AppError(
      'INSTANCE_STATE',
      `the guest of '${name}' is paused: ${kept.machine.halt.reason}`,
      {
        hint: `Free space for it first, or shut it down. Details: gnt-instance info ${name}`,
      },
    );
  }
  if (instance.partsOfRun !== null) {
    throw new AppError(
      'INSTANCE_STATE',
      `'${name}' cannot be migrated: ${describeWaiting(waitingSettings(instance))}`,
      {
        hint: `Restart it first: gnt-instance reboot ${name}`,
      },
    );
  }
  await refuseSnapshots(instance, dependencies);
  const what =
    hvparams.firmware === 'uefi'
      ? 'an UEFI firmware'
      : hvparams.cdrom_image_path !== undefined
        ? 'a cdrom'
        : bootEnv !== null && bootEnv !== LOCAL_BOOT_ENV
          ? 'a boot environment'
          : [...disks, ...nics].some(({ port }) => port !== undefined)
            ? 'NICs or disks that were added while it ran'
            : null;
  if (what !== null) {
    throw new AppError('NOT_SUPPORTED', `'${name}' has ${what} and cannot be migrated`, {
      hint: `Stop it (gnt-instance shutdown ${name}), move it, and start it again.`,
    });
  }
  return kept.machine;
}

function tooSlow(name: string, timeoutS: number): AppError {
  return new AppError('MIGRATION_FAILED', `'${name}' was not migrated within ${timeoutS} s`, {
    hint: 'The guest keeps running on its old node. Allow more time with --timeout, or repeat the migration when the guest writes less.',
  });
}
