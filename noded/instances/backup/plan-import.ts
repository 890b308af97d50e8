import { ANY_ADDRESS } from '#shared/contract/network.ts';
import type { OpcodeOf } from '#shared/contract/opcode.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { LoadedExport } from './export-store.ts';

type Create = OpcodeOf<'INSTANCE_CREATE'>;

/**
 * Completes a request for a new instance from an export; values of the request win. As in Ganeti,
 * an instance with the exported name keeps its MACs, and any other gets new ones. Pure.
 * @throws AppError VALIDATION, EXPORT_INVALID
 */
export function completeFromExport(
  opcode: Create,
  { record, dumps, path }: Pick<LoadedExport, 'record' | 'dumps' | 'path'>,
): Create {
  if (opcode.osImage !== undefined) {
    throw new AppError(
      'VALIDATION',
      'an import fills the disks from its dumps and cannot take an OS image as well',
      {
        hint: 'Leave out the OS image.',
      },
    );
  }
  if (opcode.diskTemplate !== 'file' && opcode.diskTemplate !== 'diskless') {
    throw new AppError(
      'NOT_SUPPORTED',
      `an import cannot use the disk template ${opcode.diskTemplate}: its disks grow as files`,
      {
        hint: 'Leave out --disk-template.',
      },
    );
  }
  const disks =
    opcode.disks.length > 0 || opcode.diskTemplate === 'diskless'
      ? opcode.disks
      : record.disks.map(({ sizeBytes, name }) => ({ sizeBytes, ...(name !== null && { name }) }));
  const beyond = dumps.find(({ disk }) => disk >= disks.length);
  if (beyond !== undefined) {
    throw new AppError(
      'EXPORT_INVALID',
      `the export in ${path} has a dump of disk ${beyond.disk}, but the instance gets ${disks.length} disk(s)`,
      { hint: 'Give as many disks as the export has, or none.' },
    );
  }
  const given = {
    ...opcode.osParameters,
    ...opcode.osParametersPrivate,
    ...opcode.osParametersSecret,
  };
  const osType = opcode.osType ?? record.osType;
  const below = (values: Readonly<Record<string, string>>): Record<string, string> =>
    Object.fromEntries(Object.entries(values).filter(([name]) => !Object.hasOwn(given, name)));
  return {
    ...opcode,
    // As in Ganeti: an import leaves nothing for a later installation.
    install: true,
    ...(osType !== null && { osType }),
    disks,
    diskTemplate: disks.length === 0 ? 'diskless' : 'file',
    nics:
      opcode.nics.length > 0 ? opcode.nics : record.nics.map((nic) => planNic(nic, opcode, record)),
    beparams: { ...record.beparams, ...opcode.beparams },
    tags: opcode.tags.length > 0 ? opcode.tags : [...record.tags],
    profiles: opcode.profiles ?? [...record.profiles],
    osParameters: { ...below(record.osParameters), ...opcode.osParameters },
    osParametersPrivate: { ...below(record.osParametersPrivate), ...opcode.osParametersPrivate },
  };
}

function planNic(
  nic: LoadedExport['record']['nics'][number],
  opcode: Create,
  record: LoadedExport['record'],
): Create['nics'][number] {
  const { mode } = nic;
  if (mode !== 'bridged' && mode !== 'user') {
    throw new AppError('VALIDATION', `the exported instance has a NIC of mode '${mode}'`, {
      hint: 'Define the NICs of the new instance, for example: --net 0:mode=bridged,link=br0',
    });
  }
  const common: Pick<Create['nics'][number], 'mac' | 'mode' | 'reach'> = {
    mac: opcode.name === record.name ? nic.mac : 'auto',
    mode,
    ...(nic.reach !== undefined && { reach: nic.reach }),
  };
  if (nic.networkName !== undefined) {
    // Another instance may have its address now.
    const { networkName, name } = nic;
    return { ...common, networkName, ip: ANY_ADDRESS, ...(name !== null && { name }) };
  }
  return {
    ...common,
    ...(nic.link !== null && { link: nic.link }),
    ...(nic.name !== null && { name: nic.name }),
    ...(nic.ip !== null && { ip: nic.ip }),
    ...(nic.network !== null && { network: nic.network }),
  };
}
