import { z } from 'zod';
import {
  instanceDisk,
  instanceNic,
  instanceRecord,
  type InstanceRecord,
} from '#shared/contract/instance.ts';
import { beParameters } from '#shared/contract/machine-parameters.ts';
import { instanceName, macAddress, osParameterName } from '#shared/contract/primitives.ts';
import { profileNames } from '#shared/contract/profile.ts';
import { networkName } from '#shared/contract/network.ts';
import { nicReach, type NicReach } from '#shared/contract/guest-reach.ts';
import { nicNetwork, type NicNetwork } from '#shared/contract/static-network.ts';
import { AppError, messageOf } from '#shared/errors/app-error.ts';
import { MIB } from '#shared/units/bytes.ts';
import { formatIni, parseIni, type Ini } from './ini.ts';

/** The version of Ganeti's file format. */
const EXPORT_VERSION = '0';
/** The value of `compression` in an export whose dumps are whole disks. */
const WHOLE = 'zstd-disks';
const MAX_DISKS = 16;
const MAX_NICS = 8;
/** Limits the reason in an error: the file may hold names of any length. */
const MAX_REASON_LENGTH = 1_000;
/** Seconds until the last time value of a Date (ECMA-262, time values). */
const MAX_TIMESTAMP_S = 8.64e12;
/** Byte counts stay exact up to this size. */
const MAX_DISK_MIB = Math.floor(Number.MAX_SAFE_INTEGER / MIB);

/**
 * The fields that an export with whole disks keeps: the same that a copy of the instance has.
 * References to objects outside the export, such as a boot environment or snapshots, are left out.
 */
const keptRecord = instanceRecord.omit({
  ...{ schema: true, name: true, uuid: true, instanceId: true, primaryNode: true },
  ...{ channel: true, snapshots: true, restoreId: true, partsOfRun: true, adminState: true },
  ...{ stoppedByJob: true },
  ...{ install: true, guestReport: true, lifecycle: true, hostKeys: true, beforeReinstall: true },
  ...{ bootEnv: true, createdAtMs: true, namedAfterJob: true, modifiedAtMs: true, serialNo: true },
});
const wholeInstance = keptRecord.extend({
  installState: z.enum(['created', 'installed']),
  disks: z.array(instanceDisk).max(MAX_DISKS),
  nics: z.array(instanceNic).max(MAX_NICS),
});
const wholeExport = z.object({
  instance: wholeInstance.refine(
    ({ disks, nics }) => areDistinct([...disks, ...nics].flatMap(({ port }) => port ?? [])),
    'two of its disks or NICs use the same port',
  ),
  /** Bytes that all disks together occupied. */
  takenBytes: z.number().int().nonnegative(),
  /** Variables of its UEFI firmware, compressed; null where there are none. */
  variables: z.base64().nullable(),
});
function areDistinct(all: readonly number[]): boolean {
  return new Set(all).size === all.length;
}
export type WholeExport = z.infer<typeof wholeExport>;

/** Returns the part of a record that an export with whole disks keeps. */
export function keepRecord(
  instance: InstanceRecord & Pick<WholeExport['instance'], 'installState'>,
): WholeExport['instance'] {
  return wholeInstance.parse(instance);
}

/** The instance as an export describes it, without secrets. */
export interface ExportRecord {
  readonly name: string;
  readonly node: string;
  readonly createdAtMs: number;
  /** The OS whose scripts made the dumps; null for whole disks of an instance without an OS. */
  readonly osType: string | null;
  readonly beparams: { readonly memoryMiB: number; readonly vcpus: number };
  readonly disks: readonly {
    readonly name: string | null;
    readonly sizeBytes: number;
    /** File in the export's directory; null if the disk has no dump. */
    readonly dump: string | null;
  }[];
  readonly nics: readonly {
    readonly mac: string;
    readonly mode: string;
    readonly link: string | null;
    readonly name: string | null;
    readonly ip: string | null;
    readonly network: NicNetwork | null;
    /** A network of the cluster, which must exist where the export is imported. */
    readonly networkName?: string | undefined;
    /** Absent: `all`. */
    readonly reach?: NicReach | undefined;
  }[];
  readonly osParameters: Readonly<Record<string, string>>;
  readonly osParametersPrivate: Readonly<Record<string, string>>;
  readonly tags: readonly string[];
  /** Names of its profiles. Their content stays in their cluster. */
  readonly profiles: readonly string[];
  /** Null if the OS definition's export script wrote the dumps. */
  readonly whole: WholeExport | null;
}

/**
 * Returns an export's `config.ini` in Ganeti's format (backend.py, FinalizeExport), so that Ganeti
 * and this daemon can import each other's exports. Pure.
 */
export function formatExportRecord(record: ExportRecord): string {
  return formatIni({
    export: {
      version: EXPORT_VERSION,
      timestamp: String(Math.floor(record.createdAtMs / 1000)),
      source: record.node,
      os: record.osType ?? '',
      // Ganeti refuses dumps of whole disks because it does not know this word.
      compression: record.whole === null ? 'none' : WHOLE,
    },
    instance: {
      name: record.name,
      maxmem: String(record.beparams.memoryMiB),
      minmem: String(record.beparams.memoryMiB),
      memory: String(record.beparams.memoryMiB),
      vcpus: String(record.beparams.vcpus),
      disk_template: record.disks.length === 0 ? 'diskless' : 'file',
      hypervisor: 'kvm',
      tags: record.tags.join(' '),
      nic_count: String(record.nics.length),
      ...numbered(
        'nic',
        record.nics.map(({ network, networkName, reach, ...nic }) => ({
          ...nic,
          network: null,
          ...(network !== null && { gnt_network: JSON.stringify(network) }),
          ...(networkName !== undefined && { network_name: networkName }),
          ...(reach !== undefined && { reach }),
        })),
      ),
      disk_count: String(record.disks.length),
      ...numbered(
        'disk',
        record.disks.map(({ name, sizeBytes, dump }, index) => ({
          ivname: `disk/${index}`,
          size: String(Math.ceil(sizeBytes / MIB)),
          name,
          // Ganeti takes any value for the name of a file.
          ...(dump !== null && { dump }),
        })),
      ),
    },
    hypervisor: {},
    // If the section exists, Ganeti reads memory and processors from it alone.
    backend: {
      maxmem: String(record.beparams.memoryMiB),
      minmem: String(record.beparams.memoryMiB),
      vcpus: String(record.beparams.vcpus),
    },
    os: mapValues(record.osParameters, (value) => value.replaceAll('%', '%%')),
    os_private: mapValues(record.osParametersPrivate, (value) => value.replaceAll('%', '%%')),
    // The format drops white space at the ends of lines. This JSON keeps the exact values.
    gnt: {
      parameters: JSON.stringify({
        os: record.osParameters,
        os_private: record.osParametersPrivate,
      }),
      profiles: record.profiles.join(' '),
      ...(record.whole && { whole: JSON.stringify(record.whole) }),
    },
  });
}

function numbered(
  prefix: string,
  items: readonly Readonly<Record<string, string | null>>[],
): Record<string, string> {
  const entries = items.flatMap((item, index) =>
    Object.entries(item).map(
      ([key, value]) => [`${prefix}${index}_${key}`, value ?? 'None'] as const,
    ),
  );
  return Object.fromEntries(entries);
}

function mapValues(
  values: Readonly<Record<string, string>>,
  change: (value: string) => string,
): Record<string, string> {
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, change(value)]));
}

/** Python's configparser reads `%%` as one sign. */
function unescape(values: Readonly<Record<string, string>>): Record<string, string> {
  return mapValues(values, (value) => value.replaceAll('%%', '%'));
}

/** Python writes a missing value as None. */
const optional = z
  .string()
  .transform((text) => (text === '' || text === 'None' ? null : text))
  .nullish()
  .transform((text) => text ?? null);
const count = (max: number) => z.coerce.number().int().min(0).max(max);
/** A name, not a path: it is joined to the export's directory. */
const dumpName = optional.refine(
  (name) => name === null || /^[A-Za-z0-9][A-Za-z0-9._-]{0,254}$/.test(name),
  'expected a file name',
);

const general = z.object({
  version: z.literal(EXPORT_VERSION),
  timestamp: z.coerce.number().min(0).max(MAX_TIMESTAMP_S),
  source: z.string().default(''),
  os: z.string().max(255),
  compression: z.enum(['none', WHOLE]).default('none'),
});
const instanceSection = z.object({
  name: instanceName,
  memory: z.coerce.number().optional(),
  maxmem: z.coerce.number().optional(),
  vcpus: z.coerce.number(),
  tags: z.string().default(''),
  nic_count: count(MAX_NICS).default(0),
  disk_count: count(MAX_DISKS).default(0),
});
const diskSection = z.object({
  name: optional,
  size: z.coerce.number().int().positive().max(MAX_DISK_MIB),
  dump: dumpName,
});
const nicSection = z.object({
  mac: macAddress,
  mode: optional.transform((mode) => mode ?? 'bridged'),
  link: optional,
  name: optional,
  ip: optional,
  /** UUID of a network of Ganeti's cluster; earlier releases of this daemon wrote JSON. */
  network: optional,
  gnt_network: optional,
  network_name: optional.pipe(networkName.nullable()),
  reach: optional.pipe(nicReach.nullable()),
});
const parameters = z.record(osParameterName, z.string()).default({});
const parameterSections = z.object({ os: parameters, os_private: parameters });

/**
 * Reads the text of a `config.ini` that this daemon or Ganeti wrote.
 * @throws AppError EXPORT_INVALID with the reason
 */
export function parseExportRecord(text: string): ExportRecord {
  try {
    return readRecord(parseIni(text));
  } catch (error) {
    const reason =
      error instanceof z.ZodError
        ? error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`).join('; ')
        : messageOf(error);
    const shown = reason.slice(0, MAX_REASON_LENGTH);
    throw new AppError('EXPORT_INVALID', `config.ini of the export: ${shown}`, { cause: error });
  }
}

function readRecord(ini: Ini): ExportRecord {
  const about = general.parse(ini['export'] ?? {});
  const section = ini['instance'] ?? {};
  const instance = instanceSection.parse(section);
  const item = (prefix: string, index: number): Record<string, string> =>
    Object.fromEntries(
      Object.entries(section)
        .filter(([key]) => key.startsWith(`${prefix}${index}_`))
        .map(([key, value]) => [key.slice(`${prefix}${index}_`.length), value]),
    );
  const { parameters: exact, profiles = '', whole } = ini['gnt'] ?? {};
  const isWhole = about.compression === WHOLE;
  if (!isWhole && about.os === '') throw new Error('export.os: the export names no OS');
  const values = parameterSections.parse(
    exact === undefined
      ? {
          os: unescape(ini['os'] ?? {}),
          os_private: unescape(ini['os_private'] ?? {}),
        }
      : JSON.parse(exact),
  );
  return {
    name: instance.name,
    node: about.source,
    createdAtMs: about.timestamp * 1000,
    osType: about.os === '' ? null : about.os,
    beparams: beParameters.parse({
      memoryMiB: instance.memory ?? instance.maxmem,
      vcpus: instance.vcpus,
    }),
    disks: Array.from({ length: instance.disk_count }, (_, index) => {
      const { size, ...disk } = diskSection.parse(item('disk', index));
      return { ...disk, sizeBytes: size * MIB };
    }),
    nics: Array.from({ length: instance.nic_count }, (_, index) =>
      readNic(nicSection.parse(item('nic', index))),
    ),
    osParameters: values.os,
    osParametersPrivate: values.os_private,
    tags: listWords(instance.tags),
    profiles: profileNames.parse(listWords(profiles)),
    whole: isWhole ? wholeExport.parse(JSON.parse(whole ?? '')) : null,
  };
}

function readNic({
  network_name: given,
  reach,
  network: former,
  gnt_network: own,
  ...nic
}: z.infer<typeof nicSection>): ExportRecord['nics'][number] {
  const network = own ?? (former?.startsWith('{') === true ? former : null);
  return {
    ...nic,
    network: network === null ? null : nicNetwork.parse(JSON.parse(network)),
    ...(given !== null && { networkName: given }),
    ...(reach !== null && { reach }),
  };
}

function listWords(text: string): string[] {
  return text.split(/\s+/).filter((word) => word !== '');
}
