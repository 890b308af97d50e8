import type { InstanceRecord } from '#shared/contract/instance.ts';
import type { OpcodeOf } from '#shared/contract/opcode.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { MIB } from '#shared/units/bytes.ts';
import { noSecrets } from '../instances/parameters/job-secrets.ts';
import type { JobHandler } from '../jobs/job-handler.ts';
import type { OperationDependencies } from './operation-dependencies.ts';

/**
 * Grows the file first, through QEMU while the instance runs, so that the guest sees it at once.
 * The record follows. Repeating an interrupted job ends at the same size.
 */
export function growDiskHandler(
  dependencies: OperationDependencies,
): JobHandler<OpcodeOf<'INSTANCE_GROW_DISK'>> {
  const { instances, disks, runner } = dependencies;
  return {
    prepare: async (opcode) => {
      const instance = await instances.findByName(opcode.name);
      const sizeBytes = plannedSize(instance, opcode);
      await disks.checkSizes([{ ...instance.disks[opcode.disk], sizeBytes }], instance);
      if (runner.running(instance.uuid) === undefined) await runner.checkDisksUnused(instance);
      else refuseDiskOfLater(instance, opcode.disk);
      return async (context) => {
        const running = runner.running(instance.uuid);
        if (running === undefined) await disks.grow(instance, opcode.disk, sizeBytes);
        else {
          await disks.growBelow(instance, opcode.disk, sizeBytes);
          await running.machine.growDisk(diskOfMachine(instance, opcode.disk), sizeBytes);
        }
        const grown = await instances.update(instance.uuid, (current) => ({
          ...current,
          disks: resized(current.disks, opcode.disk, sizeBytes),
          partsOfRun: current.partsOfRun && {
            ...current.partsOfRun,
            disks: resized(current.partsOfRun.disks, opcode.disk, sizeBytes),
          },
        }));
        if (running !== undefined) await runner.republish(grown, noSecrets);
        context.report.log(
          running === undefined
            ? 'the guest grows its file system at its next boot, if cloud-init does that (growpart)'
            : 'the guest sees the new size now; its file system grows when the guest does that, at the latest at its next boot',
        );
        return { name: grown.name, disk: opcode.disk, sizeBytes };
      };
    },
  };
}

/**
 * Returns the name of a disk in QEMU: its UUID if it has a port, else its number among the slots.
 * Pure.
 */
function diskOfMachine({ disks }: InstanceRecord, index: number): string | number {
  const disk = disks[index];
  if (disk?.port !== undefined) return disk.uuid;
  return disks.slice(0, index).filter(({ port }) => port === undefined).length;
}

function resized(
  disks: InstanceRecord['disks'],
  grown: number,
  sizeBytes: number,
): InstanceRecord['disks'] {
  return disks.map((disk, index) => (index === grown ? { ...disk, sizeBytes } : disk));
}

/** @throws AppError INSTANCE_STATE: the running QEMU process does not have the disk yet */
function refuseDiskOfLater({ name, disks, partsOfRun }: InstanceRecord, disk: number): void {
  const uuid = disks[disk]?.uuid;
  if (partsOfRun === null || partsOfRun.disks.some((one) => one.uuid === uuid)) return;
  throw new AppError('INSTANCE_STATE', `disk ${disk} of '${name}' is attached at its next start`, {
    hint: `Restart it (gnt-instance reboot ${name}), or shut it down first.`,
  });
}

/** Returns the size after growing, in bytes. Pure. @throws AppError VALIDATION */
export function plannedSize(
  { name, disks }: Pick<InstanceRecord, 'name' | 'disks'>,
  { disk: index, amountBytes, absolute }: OpcodeOf<'INSTANCE_GROW_DISK'>,
): number {
  const disk = disks[index];
  if (disk === undefined) {
    const there =
      disks.length === 0
        ? 'no disks'
        : `disk 0${disks.length > 1 ? ` to ${disks.length - 1}` : ''}`;
    throw new AppError('VALIDATION', `instance '${name}' has no disk ${index}: it has ${there}`, {
      hint: `Show them: gnt-instance info ${name}`,
    });
  }
  const sizeBytes = absolute ? amountBytes : disk.sizeBytes + amountBytes;
  if (sizeBytes > disk.sizeBytes) return sizeBytes;
  throw new AppError(
    'VALIDATION',
    `disk ${index} of '${name}' already has ${disk.sizeBytes / MIB} MiB`,
    {
      hint: 'Disks can only grow: shrinking would cut off data.',
    },
  );
}
