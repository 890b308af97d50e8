import {
  MAX_PLACEMENT_CHARACTERS,
  MAX_PLACEMENT_LINES,
  type HostRoom,
} from '#shared/contract/host-room.ts';
import type { InstanceNic } from '#shared/contract/instance.ts';
import type { NodeFlags } from '#shared/contract/node-flags.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { GIB, MIB } from '#shared/units/bytes.ts';
import { VCPUS_PER_CPU } from '../../instances/view/refuse-oversized.ts';

/** Resources that an instance may use at most. */
export interface Share {
  readonly memoryMiB: number;
  readonly vcpus: number;
  readonly diskBytes: number;
  /**
   * Bytes in a volume group; undefined if only existing volumes count. Volumes are not sparse, so
   * they are already part of the used space.
   */
  readonly volumeBytes?: number;
  /** Bytes in a ZFS dataset. */
  readonly zvolBytes?: number;
  readonly tags: readonly string[];
  /** The part in use; undefined if unmeasured, which counts as all of it. */
  readonly inUse?: Used;
}

export interface Used {
  readonly memoryMiB: number;
  /** Blocks of its own, which the guest can overwrite without using more space. */
  readonly diskBytes: number;
}

export interface Candidate {
  readonly name: string;
  readonly flags: NodeFlags;
  /** Null if unknown; `silence` then has the reason. */
  readonly room: HostRoom | null;
  readonly silence?: string;
  /** Shares of all its instances. Stopped ones count, since they may be started. */
  readonly taken: readonly Share[];
}

export interface Wanted extends Share {
  readonly name: string;
  /** NICs whose bridge or network must exist; none if undefined. */
  readonly nics?: readonly InstanceNic[];
}

export interface Choice {
  /** Null if no node fits. */
  readonly node: string | null;
  /** The reason in words, and the reasons against each of the other nodes. */
  readonly why: string;
  readonly against: ReadonlyMap<string, readonly string[]>;
}

export interface Preference {
  /** Prefixes of tags that no two instances of a node may share. */
  readonly exclusive: readonly string[];
  /** The node that received the request, which wins a tie. */
  readonly asked: string;
  /** Nodes that already refused, with the reason. */
  readonly refused: ReadonlyMap<string, string>;
}

/** Memory and disk space reserved for the host. */
const MEMORY_RESERVE_PART = 16;
const MAX_MEMORY_RESERVE_MIB = 1024;
const DISK_RESERVE_PART = 20;
const MAX_DISK_RESERVE_BYTES = 5 * GIB;
/** Smaller differences of room count as equal, since free space fluctuates. */
const SCORE_STEPS = 64;
/**
 * Characters of a line in a URL's query. All lines together use two thirds of the limit of Node's
 * server.
 */
const MAX_ENCODED_LINE = 640;
/** Prefix of Ganeti's cluster tags that make instance tags exclusive. */
const EXCLUSIVE = 'htools:iextags:';

/**
 * Returns prefixes such as `PREFIX:`; two instances with the same tag of that prefix must be on
 * different nodes. Pure.
 */
export function exclusivePrefixes(clusterTags: readonly string[]): readonly string[] {
  return clusterTags
    .filter((tag) => tag.startsWith(EXCLUSIVE) && tag.length > EXCLUSIVE.length)
    .map((tag) => `${tag.slice(EXCLUSIVE.length)}:`);
}

/**
 * Chooses the node with the largest share of its scarcest resource left after placement. Disks and
 * memory count in full size, since a guest pauses when its disk space runs out. Pure.
 */
export function chooseNode(
  candidates: readonly Candidate[],
  wanted: Wanted,
  { exclusive, asked, refused }: Preference,
): Choice {
  const against = new Map<string, readonly string[]>();
  const fitting: { name: string; score: number; instances: number; left: string }[] = [];
  for (const candidate of candidates.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    const { name, taken } = candidate;
    const refusal = refused.get(name);
    const reasons = refusal === undefined ? judgeNode(candidate, wanted, exclusive) : [refusal];
    if (reasons.length > 0 || candidate.room === null) against.set(name, reasons);
    else fitting.push({ name, instances: taken.length, ...scoreOf(candidate.room, taken, wanted) });
  }
  fitting.sort(
    (a, b) =>
      b.score - a.score ||
      a.instances - b.instances ||
      Number(b.name === asked) - Number(a.name === asked) ||
      (a.name < b.name ? -1 : 1),
  );
  const [best] = fitting;
  const why =
    best === undefined
      ? `none of ${candidates.length} node(s) has room`
      : `placed on ${best.name}, the emptiest of ${fitting.length} suitable node(s): ${best.left} would remain`;
  return { node: best?.name ?? null, why, against };
}

export interface Judging {
  /**
   * True for an instance that moves to this node. vcpus are shared, so those of other instances are
   * no reason to refuse it.
   */
  readonly isArrival?: boolean;
}

/** Returns the reasons against placing an instance on a node; empty if it fits. Pure. */
export function judgeNode(
  { flags, room, silence, taken }: Candidate,
  wanted: Share,
  exclusive: readonly string[],
  { isArrival = false }: Judging = {},
): readonly string[] {
  if (flags.offline) return ['marked offline'];
  const reasons = flags.drained ? ['drained'] : [];
  if (room === null) return [...reasons, silence ?? 'reports no free capacity'];
  const left = leftOf(room, taken);
  if (wanted.memoryMiB > left.memoryMiB)
    reasons.push(
      `needs ${gib(wanted.memoryMiB * MIB)} of memory, ${gib(left.memoryMiB * MIB)} free`,
    );
  if (!isArrival && wanted.vcpus > left.vcpus)
    reasons.push(`needs ${wanted.vcpus} vcpu(s), ${Math.max(0, left.vcpus)} free`);
  if (wanted.diskBytes > Math.max(0, left.diskBytes))
    reasons.push(`needs ${gib(wanted.diskBytes)} of disk, ${gib(left.diskBytes)} free`);
  for (const { kind, place, what, none } of IN_VOLUMES) {
    const { [kind]: bytes = 0 } = wanted;
    if (bytes <= left[kind]) continue;
    const has = room[place] === undefined ? none : `${gib(left[kind])} free`;
    reasons.push(`needs ${gib(bytes)} of ${what}, ${has}`);
  }
  const there = new Set(taken.flatMap(({ tags }) => tags));
  for (const tag of wanted.tags) {
    if (there.has(tag) && exclusive.some((prefix) => tag.startsWith(prefix)))
      reasons.push(`has an instance with the exclusive tag '${tag}'`);
  }
  return reasons;
}

/** The kinds of volume storage of a node. */
const IN_VOLUMES = [
  { kind: 'volumeBytes', place: 'volumes', what: 'LVM volumes', none: 'no volume group for disks' },
  { kind: 'zvolBytes', place: 'zvols', what: 'ZFS volumes', none: 'no ZFS pool for disks' },
] as const;
type InVolumes = Record<(typeof IN_VOLUMES)[number]['kind'], number>;

/** Returns the resources that are neither reserved nor in use. Pure. */
function leftOf(
  room: HostRoom,
  taken: readonly Share[],
): Used & InVolumes & { readonly vcpus: number } {
  const memoryReserve = Math.min(room.memoryMiB / MEMORY_RESERVE_PART, MAX_MEMORY_RESERVE_MIB);
  const diskReserve = Math.min(room.diskBytes / DISK_RESERVE_PART, MAX_DISK_RESERVE_BYTES);
  const unpromised = (total: number, free: number, kind: keyof Used): number => {
    const promised = taken.reduce((sum, share) => sum + share[kind], 0);
    const inUse = taken.reduce(
      (sum, { inUse: used, [kind]: whole }) => sum + Math.min(whole, used?.[kind] ?? whole),
      0,
    );
    return Math.min(total - promised, free - (promised - inUse));
  };
  const inVolumes = (kind: keyof InVolumes, place: HostRoom['volumes']): number =>
    (place?.freeBytes ?? 0) - taken.reduce((sum, { [kind]: bytes = 0 }) => sum + bytes, 0);
  return {
    memoryMiB: unpromised(room.memoryMiB, room.memoryFreeMiB, 'memoryMiB') - memoryReserve,
    volumeBytes: inVolumes('volumeBytes', room.volumes),
    zvolBytes: inVolumes('zvolBytes', room.zvols),
    vcpus: room.cpus * VCPUS_PER_CPU - taken.reduce((sum, { vcpus }) => sum + vcpus, 0),
    diskBytes: unpromised(room.diskBytes, room.diskFreeBytes, 'diskBytes') - diskReserve,
  };
}

function scoreOf(
  room: HostRoom,
  taken: readonly Share[],
  wanted: Share,
): { readonly score: number; readonly left: string } {
  const before = leftOf(room, taken);
  const memoryMiB = before.memoryMiB - wanted.memoryMiB;
  const diskBytes = before.diskBytes - wanted.diskBytes;
  const vcpus = before.vcpus - wanted.vcpus;
  const volumes = IN_VOLUMES.flatMap(({ kind, place, what }) => {
    const { [kind]: bytes = 0 } = wanted;
    if (bytes === 0) return [];
    const leftBytes = before[kind] - bytes;
    const part = leftBytes / Math.max(1, room[place]?.sizeBytes ?? 1);
    return [{ part, text: `${gib(leftBytes)} of ${what}, ` }];
  });
  const part = Math.min(
    memoryMiB / Math.max(1, room.memoryMiB),
    vcpus / Math.max(1, room.cpus * VCPUS_PER_CPU),
    // A full file system does not matter to an instance without disks on it.
    wanted.diskBytes === 0 ? 1 : diskBytes / Math.max(1, room.diskBytes),
    ...volumes.map((one) => one.part),
  );
  const left = `${gib(memoryMiB * MIB)} of memory, ${gib(diskBytes)} of disk, ${volumes.map(({ text }) => text).join('')}${vcpus} of ${room.cpus * VCPUS_PER_CPU} vcpus`;
  return { score: Math.floor(part * SCORE_STEPS), left };
}

/** Returns lines for the job: the chosen node, and the reasons against the others. Pure. */
export function describeChoice({ why, against }: Choice): readonly string[] {
  const lines = [...against].map(([node, reasons]) => `not on ${node}: ${reasons.join('; ')}`);
  const shown = lines.slice(0, MAX_PLACEMENT_LINES - 2);
  const rest = lines.length - shown.length;
  return [why, ...shown, ...(rest === 0 ? [] : [`nor on ${rest} other node(s)`])].map(asLine);
}

/** Shortens a line. It is sent in a query, and HTTP servers limit the length of a URL. */
function asLine(line: string): string {
  const asSent = (text: string): number => encodeURIComponent(JSON.stringify(text)).length;
  if (line.length <= MAX_PLACEMENT_CHARACTERS && asSent(line) <= MAX_ENCODED_LINE) return line;
  const kept = [...line].slice(0, MAX_PLACEMENT_CHARACTERS - 1);
  while (
    kept.join('').length >= MAX_PLACEMENT_CHARACTERS ||
    asSent(`${kept.join('')}…`) > MAX_ENCODED_LINE
  )
    kept.pop();
  return `${kept.join('')}…`;
}

/** Returns the failure if no node fits, with the reasons of each. Pure. */
export function noNodeFits(name: string, { against }: Choice): AppError {
  const told = [...against].map(([node, reasons]) => `${node}: ${reasons.join('; ')}`);
  const shown = told.slice(0, MAX_PLACEMENT_LINES);
  const rest = told.length - shown.length;
  const more = rest === 0 ? '' : `, and ${rest} more`;
  return new AppError('NO_ROOM', `no node has room for '${name}' (${shown.join(' | ')}${more})`, {
    details: { name, nodes: Object.fromEntries(against) },
    hint: 'Ask for less, free capacity, or choose a node with -n, which skips this check.',
  });
}

function gib(bytes: number): string {
  return `${(Math.max(0, bytes) / GIB).toFixed(1)} GiB`;
}
