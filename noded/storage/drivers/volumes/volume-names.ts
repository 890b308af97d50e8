import type { Volume } from './volume-system.ts';

const KINDS = ['new', 'ready', 'disk', 'leaving'] as const;

/**
 * What a volume of ours is for, which its name says: LVM changes a name in one commit of its own,
 * so that each moment in which a daemon or the power may go has one meaning.
 * - `new`: may hold what others wrote; nobody is given it.
 * - `ready`: zeros, of an instance whose record may not know it yet.
 * - `disk`: a disk of the record.
 * - `leaving`: was one; the record says whether it still is.
 * - `next`: is to take a disk's place when the installation, or restoration, with this id has
 *   succeeded.
 * - `snapshotting`: a snapshot that comes, whose record may not know it yet, or goes.
 * - `snapshot`: one of the record.
 */
export type VolumeState =
  | { readonly kind: (typeof KINDS)[number] }
  | { readonly kind: 'next'; readonly installation: string }
  | { readonly kind: 'snapshot' | 'snapshotting'; readonly snapshot: string };

/**
 * A volume that this product made: by its name, and by a tag that nobody else sets. The tag has the
 * group too: a clone of the group (of a snapshot of what it is on) has volumes with the same names
 * and tags, and they are somebody's backup.
 */
export interface OwnVolume extends Volume {
  readonly instance: string;
  /** UUID of the disk. */
  readonly disk: string;
  readonly state: VolumeState;
  /** From there on it may hold what others wrote: it was made larger, and not zeroed yet. */
  readonly dirtyFromBytes: number | null;
  /** The node that made it; null: its tags do not say. */
  readonly node: string | null;
  /** Snapshots of it, which LVM removes with it: they are an administrator's, and not thin. */
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

/** Of a snapshot nobody opens a volume. */
export function isOfSnapshot(name: string): boolean {
  return /\.snapshot(?:ting)?-/.test(name);
}

/** Nothing of somebody else's, whatever else is in the group. Pure. */
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
