import { z } from 'zod';
import { AppError } from '#shared/errors/app-error.ts';
import { MIB } from '#shared/units/bytes.ts';
import type { Volume, VolumeGroup } from '../volumes/volume-system.ts';

/** `-p` prints exact numbers, and `-` for properties that a kind of dataset does not have. */
const bytes = z.string().regex(/^\d{1,16}$/).transform(Number); // prettier-ignore
const absent = z.literal('-').transform(() => null);
const text = z.string().min(1);
/** A property that an administrator may set to any value; unknown values are ignored. */
const property = z.union([absent, text]);

const dataset = z.object({
  name: text,
  type: z.enum(['filesystem', 'volume']),
  guid: z.string().regex(/^\d{1,20}$/),
  used: bytes,
  available: bytes,
  referenced: bytes,
  volsize: z.union([absent, bytes]),
  'gnt:instance': property,
  'gnt:node': property,
});
const snapshot = z.object({
  name: text,
  /** Not the last column, because it may be empty. */
  clones: z.string(),
  /** Whether ZFS destroys the snapshot with its last clone. */
  defer_destroy: z.enum(['on', 'off']),
});

/**
 * The name is the first and the last column. `zfs list` prints tabs and line breaks of a property
 * as they are. Such a property always yields a row with different first and last columns, or two
 * rows with one name.
 */
const DATASET_COLUMNS = [...Object.keys(dataset.shape), 'name'] as const;
export const DATASET_FIELDS = DATASET_COLUMNS.join(',');
export const SNAPSHOT_FIELDS = Object.keys(snapshot.shape).join(',');

export type Dataset = z.infer<typeof dataset>;

export interface ZfsSnapshot {
  /** Path of its dataset. */
  readonly of: string;
  readonly name: string;
  readonly isGoing: boolean;
  /** Paths of datasets. */
  readonly clones: readonly string[];
}

/**
 * Parses the output of `zfs list -Hp` with {@link DATASET_FIELDS}.
 * @throws AppError CONFLICT: a property breaks the rows; ZodError: the format differs
 */
export function parseDatasets(report: string): readonly Dataset[] {
  const names = new Set<string>();
  return linesOf(report).map((line) => {
    const values = line.split('\t');
    const [name = ''] = values;
    if (values.length !== DATASET_COLUMNS.length || values.at(-1) !== name || names.has(name))
      throw brokenRow();
    names.add(name);
    return dataset.parse(nameValues(Object.keys(dataset.shape), values));
  });
}

/** The message does not name the dataset: a forged row could name another tenant's. */
function brokenRow(): AppError {
  return new AppError(
    'CONFLICT',
    'cannot read the list of ZFS datasets: a property gnt:instance or gnt:node has a tab or a line break',
    { hint: 'Find the dataset: zfs get -s local,received gnt:instance,gnt:node' },
  );
}

/** @throws Error, ZodError */
export function parseSnapshots(report: string): readonly ZfsSnapshot[] {
  return rowsOf(report, Object.keys(snapshot.shape)).map((row) => {
    const { name: path, defer_destroy: going, clones } = snapshot.parse(row);
    const [of = '', name = ''] = path.split('@');
    const cloned = clones.split(',').filter((clone) => clone !== '' && clone !== '-');
    return { of, name, isGoing: going === 'on', clones: cloned };
  });
}

/** Returns the datasets that can contain volumes. Pure. */
export function groupsOf(datasets: readonly Dataset[]): readonly VolumeGroup[] {
  return datasets
    .filter(({ type }) => type === 'filesystem')
    .map(({ name, guid, used, available }) => ({
      ...{ name, uuid: guid, sizeBytes: used + available, freeBytes: available },
      // A multiple of any volume block size, and the unit of sizes that users give.
      extentBytes: MIB,
    }));
}

/**
 * Returns the volumes, the room of each dataset in the form of a pool, and administrators'
 * snapshots. Pure.
 * @param hasDevice whether a volume's device exists
 */
export function volumesOf(
  datasets: readonly Dataset[],
  snapshots: readonly ZfsSnapshot[],
  hasDevice: (path: string) => boolean,
): readonly Volume[] {
  const guids = new Map(datasets.map(({ name, guid }) => [name, guid]));
  const common = (path: string) => {
    const group = parentOf(path);
    return { group, groupUuid: guids.get(group) ?? '', name: path.slice(group.length + 1) };
  };
  const owes = new Set(snapshots.filter(isLeft).map(({ of }) => of));
  return [
    ...datasets.filter(({ type }) => type === 'filesystem').map(roomOf),
    ...datasets.flatMap((one) => {
      if (one.volsize === null) return [];
      const properties = [one['gnt:instance'], one['gnt:node']];
      const tags = ['gnt:instance', 'gnt:node'].map((key, at) => `${key}=${properties[at] ?? ''}`);
      return [
        {
          ...{ ...common(one.name), ...NO_POOL, sizeBytes: one.volsize, origin: '' },
          tags: tags.filter((_, at) => properties[at] != null),
          isActive: hasDevice(one.name) && !owes.has(one.name),
          pool: poolOf(one.name),
          dataShare: Math.min(1, one.referenced / Math.max(1, one.volsize)),
        },
      ];
    }),
    ...snapshots
      .filter(({ name }) => !isOurs(name))
      .map(({ of, name }) => {
        const { group, groupUuid, name: origin } = common(of);
        const own = { group, groupUuid, name: `${origin}@${name}`, origin, tags: [] };
        return { ...NO_POOL, ...own, sizeBytes: 0, isActive: false };
      }),
  ];
}

const NO_POOL = {
  ...{ pool: '', isPool: false, isZeroing: true, dataShare: null, usedShare: null },
} as const;

function roomOf({ name, guid, used, available }: Dataset): Volume {
  const sizeBytes = used + available;
  const share = sizeBytes === 0 ? 1 : used / sizeBytes;
  return {
    ...{ ...NO_POOL, group: name, groupUuid: guid, name: poolOf(name), isPool: true },
    ...{ sizeBytes, tags: [], origin: '', isActive: true, dataShare: share, usedShare: share },
  };
}

/** Prefix of the snapshots that clones made by this product need. */
export const OWN_SNAPSHOT = 'gnt-';

/** Returns true for a snapshot that an interrupted clone left without a deferred destruction. */
export function isLeft({ name, isGoing }: ZfsSnapshot): boolean {
  return isOurs(name) && !isGoing;
}

export function isOurs(snapshotName: string): boolean {
  return snapshotName.startsWith(OWN_SNAPSHOT);
}

export function poolOf(path: string): string {
  return path.split('/')[0] ?? '';
}

function parentOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf('/')));
}

function rowsOf(report: string, fields: readonly string[]): readonly Record<string, string>[] {
  return linesOf(report).map((line) => {
    const values = line.split('\t');
    if (values.length !== fields.length) throw new Error(`zfs list printed '${line}'`);
    return nameValues(fields, values);
  });
}

function linesOf(report: string): readonly string[] {
  return report.split('\n').filter((line) => line !== '');
}

function nameValues(
  fields: readonly string[],
  values: readonly string[],
): Readonly<Record<string, string>> {
  return Object.fromEntries(fields.map((field, at) => [field, values[at] ?? '']));
}
