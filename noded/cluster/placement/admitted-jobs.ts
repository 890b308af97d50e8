import { randomUUID } from 'node:crypto';
import { BUILT_APPLIANCE } from '#shared/contract/appliance-manifest.ts';
import { localDiskBytes, volumeBytes, zvolBytes } from '#shared/contract/disk-template.ts';
import type { OpcodeOf } from '#shared/contract/opcode.ts';
import { AppError, isAppError } from '#shared/errors/app-error.ts';
import { withDefaultOs } from '../../instances/record/default-os.ts';
import { planNewInstance } from '../../instances/record/plan-record.ts';
import type { JobLayer } from '../../jobs/job-service.ts';
import type { NicTaps } from '../../net/tenant/nic-taps.ts';
import type { OsRegistry } from '../../provision/os/os-registry.ts';
import { randomNicMac } from '../../records/channel-addresses.ts';
import type { ClusterRepository } from '../../records/cluster-repository.ts';
import type { Wanted } from './choose-node.ts';
import type { NodeRoom } from './node-room.ts';

export interface AdmittedJobsDependencies {
  readonly room: NodeRoom;
  readonly osRegistry: Pick<OsRegistry, 'find'>;
  readonly clusters: Pick<ClusterRepository, 'load'>;
  readonly nicTaps: Pick<NicTaps, 'check'>;
}

/**
 * Reserves room for each new instance before its job is accepted. An instance that placement put on
 * this node is refused if the room is gone by then.
 */
export function admittedJobs({
  room,
  osRegistry,
  clusters,
  nicTaps,
}: AdmittedJobsDependencies): JobLayer {
  return (next) => ({
    submit: async (opcode, options = {}) => {
      const isNew = opcode.opcode === 'INSTANCE_CREATE' && options.isDryRun !== true;
      const wanted = isNew ? wantedBy(opcode) : null;
      if (!isNew || wanted === null) return next.submit(opcode, options);
      if (options.placement !== undefined) {
        const { osType } = withDefaultOs(opcode, (await clusters.load()).defaultOs);
        if (osType !== undefined)
          await osRegistry.find(osType, { forceVariant: opcode.forceVariant === true });
        await requireNics(wanted, nicTaps);
      }
      const admission =
        options.placement === undefined ? room.note(wanted) : await room.admit(wanted);
      try {
        const id = await next.submit(opcode, options);
        admission.becomes(id);
        return id;
      } catch (error) {
        admission.withdraw();
        throw error;
      }
    },
  });
}

/**
 * Refuses a bridge or network that this node lacks and another one may have.
 * @throws AppError NO_ROOM
 */
async function requireNics(
  { name, nics = [] }: Wanted,
  nicTaps: AdmittedJobsDependencies['nicTaps'],
): Promise<void> {
  try {
    for (const nic of nics) await nicTaps.check(nic);
  } catch (cause) {
    if (!isAppError(cause)) throw cause;
    throw new AppError('NO_ROOM', cause.message, { details: { name }, hint: cause.hint, cause });
  }
}

/** Returns true if the chosen node refuses and another one may accept. */
export function isPassedOn(error: unknown): error is AppError {
  return isAppError(error, 'NO_ROOM') || isOsMissing(error);
}

export function isOsMissing(error: unknown): error is AppError {
  return (['OS_NOT_FOUND', 'OS_INVALID', 'OS_VARIANT'] as const).some((code) =>
    isAppError(error, code),
  );
}

/**
 * Returns an instance's demand.
 * @returns null for a contradictory request, which its own job refuses
 */
export function wantedBy(opcode: OpcodeOf<'INSTANCE_CREATE'>): Wanted | null {
  try {
    const planned = planNewInstance(opcode, {
      nodeName: '',
      newUuid: randomUUID,
      newMac: () => randomNicMac(),
      // The node chooses the group or pool.
      ...{ vgName: 'any', zfsPool: 'any' },
    });
    const { name, beparams, tags, nics } = planned;
    const disks = {
      diskBytes: localDiskBytes(planned),
      ...{ volumeBytes: volumeBytes(planned), zvolBytes: zvolBytes(planned) },
    };
    return { name, ...beparams, ...disks, tags, nics };
  } catch (error) {
    if (isAppError(error)) return null;
    throw error;
  }
}

/**
 * Returns the first object of a request that only the asked node has: a file, an export or an
 * appliance; undefined without one.
 */
export function namedOfThisHost({
  osImage,
  personalizationPackage,
  hvparams,
  installParameters,
  importFrom,
  appliance = BUILT_APPLIANCE,
}: OpcodeOf<'INSTANCE_CREATE'>): string | undefined {
  const ofMachines = [hvparams, installParameters ?? {}].flatMap((parameters) => [
    parameters.kernel_path,
    parameters.initrd_path,
    parameters.cdrom_image_path,
  ]);
  if (appliance !== BUILT_APPLIANCE) return appliance;
  const sources = [osImage, personalizationPackage, ...ofMachines];
  return importFrom ?? sources.find((source) => source?.startsWith('/') === true);
}
