import type { Volume } from './volume-system.ts';

const KINDS = ['new', 'ready', 'disk', 'leaving'] as const;

/**
 * The purpose of a volume, encoded in its name. LVM renames in one commit, so each moment of a kill
 * or power cut leaves a defined state.
 * - `new`: may hold another tenant's bytes; no guest gets it.
 * - `ready`: zeros; the instance's record may lack it.
 * - `disk`: a disk of the record.
 * - `leaving`: a removed disk, unless the record still has it.
 * - `next`: replaces a disk when the installation or restoration with this id succeeds.
 * - `snapshotting`: a snapshot being taken or removed; the record may lack it.
 * - `snapshot`: a snapshot of the record.
 */
export type VolumeState =
  | { readonly kind: (typeof KINDS)[number] }
  | { readonly kind: 'next'; readonly installation: string }
  | { readonly kind: 'snapshot' | 'snapshotting'; readonly snapshot: string };

/**
 * A volume of this product, known by its name and its tag. The tag includes the group's UUID: a
 * clone of the group, such as a backup, has volumes with the same names and tags.
 */
export interface OwnVolume extends Volume {
  readonly instance: string;
  /** UUID of the disk. */
  readonly disk: string;
  readonly state: VolumeState;
  /**
   * From this byte on it may hold another tenant's bytes: it was enlarged and is not zeroed yet.
   */
  readonly dirtyFromBytes: number | null;
  /** The node that made it; null if its tags do not tell. */
  readonly node: string | null;
  /** An administrator's snapshots, which are not thin. LVM removes them with the volume. */
  readonly dependents: readonly string[];
}

const INSTANCE_TAG = /^gnt:instance=([0-9a-f-]{36}):([A-Za-z0-9-]+)$/;
const NODE_TAG = /^gnt:node=(.+)$/;
const DIRTY_TAG = /^gnt:dirty-from=(\d{1,16})$/;
const NAME =
  /^([0-9a-f-]{36})\.(?:(new|ready|disk|leaving)|(next|snapshot|snapshotting)-([0-9a-f-]{36}))$/;

export function instanceTag(uuid: string, groupUuid: string): string {
  return `gnt:instance=${uuid}:${groupUuid}`;
}

export function nodeTag(node: string): string {
  return `gnt:node=${node}`;
}

export function dirtyTag(fromBytes: number): string {
  return `gnt:dirty-from=${fromBytes}`;
}

export function volumeName(disk: string, state: VolumeState): string {
  if (state.kind === 'next') return `${disk}.next-${state.installation}`;
  return `${disk}.${state.kind}${'snapshot' in state ? `-${state.snapshot}` : ''}`;
}

export function volumePath(group: string, name: string): string {
  return `/dev/${group}/${name}`;
}

/** Returns true for a volume of a snapshot, which no program opens by its name. */
export function isOfSnapshot(name: string): boolean {
  return /\.snapshot(?:ting)?-/.test(name);
}

/** Returns only this product's volumes of a group. Pure. */
export function findOwn(volumes: readonly Volume[]): readonly OwnVolume[] {
  return volumes.flatMap((volume) => {
    const [, disk, kind, link, id] = NAME.exec(volume.name) ?? [];
    const instance = instanceOf(volume);
    if (disk === undefined || instance === undefined) return [];
    const dirty = volume.tags.flatMap((tag) => DIRTY_TAG.exec(tag)?.[1] ?? []).map(Number);
    return [
      {
        ...{ ...volume, instance, disk },
        state: stateOf(kind ?? link, id),
        dirtyFromBytes: dirty.length === 0 ? null : Math.min(...dirty),
        node: volume.tags.flatMap((tag) => NODE_TAG.exec(tag)?.[1] ?? [])[0] ?? null,
        dependents: volumes.filter((other) => isSnapshotOf(other, volume)).map(({ name }) => name),
      },
    ];
  });
}

function isSnapshotOf({ groupUuid, origin, pool }: Volume, volume: Volume): boolean {
  return groupUuid === volume.groupUuid && origin === volume.name && pool === '';
}

function instanceOf({ tags, groupUuid }: Volume): string | undefined {
  const found = tags.map((tag) => INSTANCE_TAG.exec(tag)).find((match) => match?.[2] === groupUuid);
  return found?.[1];
}

function stateOf(named: string | undefined, id = ''): VolumeState {
  if (named === 'snapshot' || named === 'snapshotting') return { kind: named, snapshot: id };
  const kind = KINDS.find((one) => one === named);
  return kind === undefined ? { kind: 'next', installation: id } : { kind };
}
