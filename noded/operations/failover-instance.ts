import { setTimeout as sleep } from 'node:timers/promises';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { requireTakesNew } from '#shared/contract/node-flags.ts';
import type { OpcodeOf } from '#shared/contract/opcode.ts';
import { AppError, isAppError } from '#shared/errors/app-error.ts';
import { StoreConflict } from '#shared/store/store-conflict.ts';
import { NODE_LEASES } from '../storage/fencing/node-lease.ts';
import { noSecrets } from '../instances/parameters/job-secrets.ts';
import type { JobContext, JobHandler } from '../jobs/job-handler.ts';
import { checkArrival } from './check-arrival.ts';
import { refuseInstalling } from './move.ts';
import type { OperationDependencies } from './operation-dependencies.ts';

/**
 * The other node kills a paused QEMU process two lease times after its last renewal
 * (plan-lease.ts). A file server drops the locks of a dead node.
 */
const LOCK_TIMEOUT_MS = 600_000;
const LOOK_MS = 1000;
const TELL_MS = 10_000;

/**
 * Takes an instance with shared disks from a node that is down. The node's lease must be over by
 * this node's clock, and its disks must be free. One commit then names this node in the record and
 * tells the other node. The commit fails if that node has renewed its lease.
 */
export function failoverInstanceHandler(
  dependencies: OperationDependencies,
): JobHandler<OpcodeOf<'INSTANCE_FAILOVER'>> {
  const { instances, nodes, nodeName, disks, runner } = dependencies;
  return {
    prepare: async ({ name }, signal) => {
      const instance = await instances.findByName(name);
      await refuseNotDown(instance, dependencies);
      requireTakesNew(nodeName, await nodes.flagsOf(nodeName));
      await checkArrival(instance, signal, dependencies);
      await disks.checkShared(instance).catch((error: unknown) => {
        // The QEMU process that will be paused still uses the disk.
        if (!isAppError(error, 'DISK_IN_USE')) throw error;
      });
      return async (context) => {
        const { primaryNode } = instance;
        await untilPaused(primaryNode, dependencies, context);
        await untilFree(instance, dependencies, context);
        const { taken, isUp } = await takeFromLost(instance, dependencies);
        context.report.log(`${name} is on ${nodeName} now: ${primaryNode} lost it`);
        await disks.settle(taken);
        if (isUp) {
          tellLost(taken, context);
          await runner.start(taken, noSecrets, context);
        }
        return { name, uuid: taken.uuid, node: nodeName };
      };
    },
  };
}

/** @throws AppError NOT_SUPPORTED, INSTANCE_STATE, HOST_PREREQUISITE */
async function refuseNotDown(
  instance: InstanceRecord,
  { owns, nodeName, nodes, presenceOf, leases }: OperationDependencies,
): Promise<void> {
  const { name, primaryNode: node, diskTemplate } = instance;
  if (diskTemplate !== 'sharedfile') {
    throw new AppError('NOT_SUPPORTED', `the disks of '${name}' are only on ${node}`, {
      details: { name, node },
      hint: 'Start that node again, or import an export of the instance elsewhere: gnt-backup import',
    });
  }
  refuseInstalling(instance);
  if (owns(node)) {
    throw new AppError('INSTANCE_STATE', `instance '${name}' is already on node ${nodeName}`, {
      details: { name, node },
    });
  }
  // A hanging node is up but does not answer: its lease decides.
  if ((await presenceOf(node)) === 'answers') throw itAnswers(name, node);
  // The offline flag says that the node is off.
  if (!(await nodes.flagsOf(node)).offline) await leases.requireSeen(node);
}

async function untilPaused(
  node: string,
  { leases }: OperationDependencies,
  { signal, report }: JobContext,
): Promise<void> {
  let toldMs = Number.POSITIVE_INFINITY;
  const onWait = (leftMs: number): void => {
    if (toldMs - leftMs < TELL_MS) return;
    toldMs = leftMs;
    const seconds = Math.ceil(leftMs / 1000);
    report.log(`${node} may still write: its lease ends in ${seconds} s`);
  };
  await leases.untilOver(node, { signal, onWait });
}

async function untilFree(
  instance: InstanceRecord,
  { disks, clock }: OperationDependencies,
  { signal, report }: JobContext,
): Promise<void> {
  const untilMs = clock.monotonicMs() + LOCK_TIMEOUT_MS;
  for (let isTold = false; ; isTold = true) {
    try {
      return await disks.checkShared(instance);
    } catch (error) {
      if (!isAppError(error, 'DISK_IN_USE') || clock.monotonicMs() >= untilMs) throw error;
      if (!isTold)
        report.log(
          `a paused QEMU process holds its disks and ends soon (${error.message})`,
          'warn',
        );
    }
    await sleep(LOOK_MS, undefined, { signal });
  }
}

/**
 * Takes an instance in one commit with the lease of the lost node. Taking another instance of that
 * node changes the same lease. The commit then conflicts, and the next try reads the lease again.
 * @throws AppError INSTANCE_STATE: the node is up; CONFLICT: another node has taken this instance
 */
export async function takeFromLost(
  instance: Pick<InstanceRecord, 'uuid' | 'name' | 'primaryNode'>,
  dependencies: Pick<OperationDependencies, 'instances' | 'leases' | 'nodeName'>,
): Promise<{ readonly taken: InstanceRecord; readonly isUp: boolean }> {
  const { uuid, name, primaryNode } = instance;
  const { instances, leases, nodeName } = dependencies;
  for (;;) {
    let isUp = false;
    try {
      const taken = await instances.update(
        uuid,
        (current) => {
          if (![primaryNode, nodeName].includes(current.primaryNode))
            throw new AppError('CONFLICT', `'${name}' is on ${current.primaryNode} now`);
          refuseInstalling(current);
          isUp = current.adminState === 'up' || current.stoppedByJob !== null;
          // Sequence numbers of guest reports belong to the node that received them.
          const guestReport = current.guestReport && { ...current.guestReport, afterSequence: 0 };
          return { ...current, primaryNode: nodeName, stoppedByJob: null, guestReport };
        },
        async () => [await leases.planTaking(primaryNode, uuid)],
      );
      return { taken, isUp };
    } catch (error) {
      if (!(error instanceof StoreConflict) || error.collection !== NODE_LEASES) throw error;
    }
  }
}

function tellLost({ secretNames, name }: InstanceRecord, { report }: JobContext): void {
  if (secretNames.length === 0) return;
  report.log(
    `its secrets were only in the memory of the lost node. Stop it, then supply ${secretNames.join(', ')}: gnt-instance startup ${name} --os-parameters-secret NAME=@FILE`,
    'warn',
  );
}

function itAnswers(name: string, node: string): AppError {
  return new AppError('INSTANCE_STATE', `node ${node}, which has '${name}', answers`, {
    details: { name, node },
    hint: `Fail over only from nodes that are down. Shut ${name} down on its node.`,
  });
}
