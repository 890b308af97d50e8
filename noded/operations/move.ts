import { basename } from 'node:path';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import type { OpcodeOf } from '#shared/contract/opcode.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { SendRate } from '#shared/stream/send-rate.ts';
import { createMigrationTargetClient } from '../cluster/migration/migration-target-client.ts';
import { moveInstance } from '../cluster/migration/move-instance.ts';
import type { Peers } from '../cluster/peers/ask-peer.ts';
import type { JobHandler } from '../jobs/job-handler.ts';
import { noNode } from '../records/node-registry.ts';
import type { OperationDependencies } from './operation-dependencies.ts';

/** Moves a stopped instance. Both nodes refuse impossible moves before anything changes. */
export function moveInstanceHandler(
  dependencies: OperationDependencies,
): JobHandler<OpcodeOf<'INSTANCE_MOVE'>> {
  const { instances, lifecycles } = dependencies;
  return {
    prepare: async ({ name, node: wanted, dataRate }, signal) => {
      const instance = await instances.findByName(name);
      refuseUnmovableDisks(instance, dependencies);
      const { node, peers } = await requireOtherNode(name, wanted, dependencies);
      await refuseUnmovable(instance, dependencies);
      const target = createMigrationTargetClient(peers, node);
      await target.check(instance.uuid, signal);
      return async (context) => {
        const rate = await sendRateOf(dataRate, dependencies);
        await moveInstance(instance, node, context, { ...dependencies, target, rate });
        lifecycles.forget(instance.uuid);
        const { secretNames, uuid } = instance;
        if (secretNames.length > 0) {
          context.report.log(
            `its secrets ended with its last run and are in no record. Supply ${secretNames.join(', ')}: gnt-instance startup ${name} --os-parameters-secret NAME=@FILE`,
            'warn',
          );
        }
        return { name, uuid, node };
      };
    },
  };
}

/** @param given by the operation, instead of the cluster's rate */
export async function sendRateOf(
  given: number | undefined,
  { clusters }: Pick<OperationDependencies, 'clusters'>,
): Promise<SendRate | null> {
  const bytesPerS = given ?? (await clusters.load()).dataRate ?? 0;
  return bytesPerS === 0 ? null : new SendRate(bytesPerS);
}

/** @throws AppError INSTANCE_STATE, NODE_NOT_FOUND */
export async function requireOtherNode(
  name: string,
  node: string | undefined,
  { nodes, nodeName, peers }: Pick<OperationDependencies, 'nodes' | 'nodeName' | 'peers'>,
): Promise<{ readonly node: string; readonly peers: Peers }> {
  if (peers === null || node === undefined) throw nowhere(name);
  if (node === nodeName) {
    throw new AppError('INSTANCE_STATE', `instance '${name}' is already on node ${node}`, {
      details: { name, node },
    });
  }
  const names = await nodes.names();
  if (!names.includes(node)) throw noNode(node, names);
  return { node, peers };
}

/** @throws AppError INSTANCE_STATE, DISK_IN_USE, DISK_MISSING */
async function refuseUnmovable(
  instance: InstanceRecord,
  dependencies: OperationDependencies,
): Promise<void> {
  const { runner, disks } = dependencies;
  const { name, uuid } = instance;
  if (runner.isRunning(uuid)) {
    throw new AppError('INSTANCE_STATE', `instance '${name}' is running and cannot be moved`, {
      details: { name },
      hint: `Migrate a running instance: gnt-instance migrate ${name}`,
    });
  }
  refuseInstalling(instance);
  await disks.settle(instance);
  await refuseSnapshots(instance, dependencies);
  await runner.checkDisksUnused(instance);
  await disks.activate(instance);
}

/** @throws AppError INSTANCE_STATE */
export function refuseInstalling({ name, installState }: InstanceRecord): void {
  if (installState !== 'installing') return;
  throw new AppError('INSTANCE_STATE', `instance '${name}' is being installed`, {
    hint: 'Show the job: gnt-job list',
  });
}

/** @throws AppError NOT_SUPPORTED: shared disks, volumes */
export function refuseUnmovableDisks(
  instance: InstanceRecord,
  { disks }: Pick<OperationDependencies, 'disks'>,
): void {
  disks.requireFiles(instance, 'moved');
  const { name, diskTemplate } = instance;
  if (diskTemplate !== 'sharedfile') return;
  throw new AppError('NOT_SUPPORTED', `'${name}' has shared disks, which need no move`, {
    details: { name },
    hint: 'Only instances with the disk template file can be moved.',
  });
}

/** @throws AppError INSTANCE_STATE */
export async function refuseSnapshots(
  instance: InstanceRecord,
  { snapshots }: Pick<OperationDependencies, 'snapshots'>,
): Promise<void> {
  const { name } = instance;
  const forgotten = (await snapshots.listForgotten(instance)).map((path) => basename(path));
  const taken = [...instance.snapshots.map((snapshot) => snapshot.name), ...forgotten];
  if (taken.length === 0) return;
  throw new AppError('INSTANCE_STATE', `'${name}' has snapshots, which cannot be moved`, {
    details: { name, snapshots: taken },
    hint: `Remove them first: ${taken.join(', ')} (gnt-instance remove-snapshot), or save their content with gnt-backup export`,
  });
}

function nowhere(name: string): AppError {
  return new AppError('NODE_NOT_FOUND', `there is no other node to which '${name}' could move`, {
    details: { name },
    hint: 'Create a cluster of several nodes with gnt-cluster init --store redis://HOST',
  });
}
