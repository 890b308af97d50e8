import { randomUUID } from 'node:crypto';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { requireTakesNew } from '#shared/contract/node-flags.ts';
import { ANY_ADDRESS } from '#shared/contract/network.ts';
import type { OpcodeOf } from '#shared/contract/opcode.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { newInstanceId, NO_PAST } from '../instances/record/plan-record.ts';
import type { JobContext, JobHandler } from '../jobs/job-handler.ts';
import { randomNicMac } from '../records/channel-addresses.ts';
import type { NewInstance } from '../records/instance-repository.ts';
import { refuseTaken } from './rename-instance.ts';
import type { OperationDependencies } from './operation-dependencies.ts';

/**
 * Copies the disks before the record, in a folder that belongs to no instance yet. The commit of
 * the record makes the copy. The guest's files stay untouched: the new instance id makes cloud-init
 * treat it as a new machine.
 */
export function copyInstanceHandler(
  dependencies: OperationDependencies,
): JobHandler<OpcodeOf<'INSTANCE_COPY'>> {
  const { instances, disks, nodes, nodeName, runner } = dependencies;
  return {
    prepare: async ({ name, newName }) => {
      // The copy stays on this node, because its disks share blocks with the original.
      requireTakesNew(nodeName, await nodes.flagsOf(nodeName));
      const instance = await instances.findByName(name);
      refuseUnfinished(instance);
      if (runner.isRunning(instance.uuid)) {
        throw new AppError('INSTANCE_STATE', `'${name}' is running: its disks cannot be copied`, {
          hint: `Stop it first: gnt-instance shutdown ${name}`,
        });
      }
      await runner.checkDisksUnused(instance);
      await refuseTaken(newName, instances);
      await disks.checkCopy(instance);
      return async (context) => {
        const planned = planCopy(instance, newName);
        const drawnMacs = new Set(planned.nics.map(({ mac }) => mac));
        const copied = await disks.copy(instance, planned, {
          signal: context.signal,
          onProgress: (done, total) => context.report.progress('copying disks', done, total),
          commit: () => instances.create(planned, { drawnMacs }),
          isThere: async (uuid) => (await instances.findByUuid(uuid)) !== undefined,
        });
        tellDifferences(instance, copied, context);
        return { name: copied.name, uuid: copied.uuid };
      };
    },
  };
}

/**
 * Refuses an instance whose disks hold an unfinished installation.
 * @throws AppError INSTANCE_STATE
 */
export function refuseUnfinished({
  name,
  installState,
}: Pick<InstanceRecord, 'name' | 'installState'>): 'installed' | 'created' {
  if (installState === 'installed' || installState === 'created') return installState;
  throw new AppError('INSTANCE_STATE', `'${name}' is not installed (${installState})`, {
    hint: `Install it first: gnt-instance reinstall ${name}`,
  });
}

/**
 * Plans the record of a copy: settings stay, identities are new, and the guest's reports are left
 * out.
 */
export function planCopy(instance: InstanceRecord, newName: string): NewInstance {
  return {
    // The repository sets the channel and the creation time.
    ...instance,
    name: newName,
    uuid: randomUUID(),
    instanceId: newInstanceId(randomUUID, instance.dialects),
    channelNicUuid: randomUUID(),
    nics: instance.nics.map((nic) => ({
      ...nic,
      uuid: randomUUID(),
      mac: randomNicMac(nic.networkName === undefined ? undefined : nic.mac.slice(0, 8)),
      // Addresses are unique within a network: the copy gets its own.
      ...(nic.networkName !== undefined && { ip: ANY_ADDRESS, network: null }),
    })),
    // A copy grows on the node.
    diskTemplate: instance.diskTemplate === 'sharedfile' ? 'file' : instance.diskTemplate,
    disks: instance.disks.map((disk) => ({ ...disk, uuid: randomUUID() })),
    ...NO_PAST,
  };
}

function tellDifferences(
  { name, secretNames }: InstanceRecord,
  copied: InstanceRecord,
  { report }: JobContext,
): void {
  report.log(`instance ${copied.name} has the channel address ${copied.channel.ip}`);
  if (secretNames.length > 0) {
    report.log(
      `secrets are not copied. Supply ${secretNames.join(', ')}: gnt-instance startup ${copied.name} --os-parameters-secret NAME=@FILE`,
      'warn',
    );
  }
  const fixed = copied.nics
    .filter(({ networkName }) => networkName === undefined)
    .flatMap(({ network }) => network?.addresses ?? []);
  if (fixed.length > 0) {
    report.log(
      `its NICs have the addresses of ${name}: ${fixed.join(', ')}. Change them: gnt-instance modify ${copied.name} --net N:ip=…`,
      'warn',
    );
  }
  report.log(
    `cloud-init treats the copy as a new instance and gives it a host name and host keys of its own. Without cloud-init it keeps those of ${name}`,
  );
}
