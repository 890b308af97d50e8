import type { InstanceRecord } from '#shared/contract/instance.ts';
import type { ExportRecord } from './export-record.ts';

/** Returns the export record of an instance with these dump files. Pure. */
export function describeInstance(
  instance: InstanceRecord,
  {
    node,
    createdAtMs,
    dumpOf,
  }: Pick<ExportRecord, 'node' | 'createdAtMs'> & {
    readonly dumpOf: (disk: number) => string;
  },
): Omit<ExportRecord, 'whole'> {
  return {
    ...{ name: instance.name, node, createdAtMs, osType: instance.osType },
    beparams: instance.beparams,
    disks: instance.disks.map(({ name, sizeBytes }, disk) => ({
      ...{ name, sizeBytes, dump: dumpOf(disk) },
    })),
    nics: instance.nics.map(({ mac, mode, link, name, ip, network, networkName, reach }) => ({
      ...{ mac, mode, link, name, ip, network, networkName, reach },
    })),
    osParameters: instance.osParameters,
    osParametersPrivate: instance.osParametersPrivate,
    tags: instance.tags,
    profiles: instance.profiles,
  };
}
