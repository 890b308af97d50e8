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

/** What an instance takes of its node when it is all used. */
export interface Share {
  readonly memoryMiB: number;
  readonly vcpus: number;
  readonly diskBytes: number;
  /**
   * Of a volume group; undefined: nothing that is not there already. Volumes are not sparse: what
   * an instance has is not free.
   */
  readonly volumeBytes?: number;
  /** The same of a ZFS dataset. */
  readonly zvolBytes?: number;
  readonly tags: readonly string[];
  /** What of it is in use already; undefined where nobody has looked: then all of it counts as. */
  readonly inUse?: Used;
}

export interface Used {
  readonly memoryMiB: number;
  /** Blocks that nothing else has: those that are written anew take no others. */
  readonly diskBytes: number;
}

export interface Candidate {
  readonly name: string;
  readonly flags: NodeFlags;
  /** Null where it is not known; then `silence` says why. */
  readonly room: HostRoom | null;
  readonly silence?: string;
  /** What all its instances take, stopped ones too: they may be started. */
  readonly taken: readonly Share[];
}

export interface Wanted extends Share {
  readonly name: string;
  /** They need what they are plugged into; none where nobody says so. */
  readonly nics?: readonly InstanceNic[];
}

export interface Choice {
  /** Null when none fits. */
  readonly node: string | null;
  /** Why that one, in words; what stands against each of the others that were passed over. */
  readonly why: string;
  readonly against: ReadonlyMap<string, readonly string[]>;
}

export interface Preference {
  /** Prefixes of tags that no two instances of one node may share. */
  readonly exclusive: readonly string[];
  /** The node that was asked: it is taken where others have no more room. */
  readonly asked: string;
  /** Nodes that refused already, and why. */
  readonly refused: ReadonlyMap<string, string>;
}

/** What is left to the host, of its memory and of the file system of the disks. */
const MEMORY_RESERVE_PART = 16;
const MAX_MEMORY_RESERVE_MIB = 1024;
const DISK_RESERVE_PART = 20;
const MAX_DISK_RESERVE_BYTES = 5 * GIB;
/** Nodes whose room differs by less have as much: what is free trembles. */
const SCORE_STEPS = 64;
/** Characters of a line in a query: with all lines two thirds of what Node's server takes. */
const MAX_ENCODED_LINE = 640;
/** Ganeti's cluster tags that make instance tags exclusive, by their beginning. */
const EXCLUSIVE = 'htools:iextags:';

/** Two instances with one tag that begins with `PREFIX:` are not on one node. Pure. */
export function exclusivePrefixes(clusterTags: readonly string[]): readonly string[] {
  return clusterTags
    .filter((tag) => tag.startsWith(EXCLUSIVE) && tag.length > EXCLUSIVE.length)
    .map((tag) => `${tag.slice(EXCLUSIVE.length)}:`);
}

/**
 * The node with room for one more instance: the one that has the largest part of its scarcest thing
 * left afterwards. All disks and memory count as large as they may grow, since a guest that finds
 * the disk full stands still. Pure.
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
   * Who comes from another node, and was sent to this one: processors are shared, and what others
   * were promised of them is no reason to refuse it.
   */
  readonly isArrival?: boolean;
}

/** Everything that stands against one more instance on a node; nothing: it fits. Pure. */
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

/** What of a node has room for volumes. */
const IN_VOLUMES = [
  { kind: 'volumeBytes', place: 'volumes', what: 'LVM volumes', none: 'no volume group for disks' },
  { kind: 'zvolBytes', place: 'zvols', what: 'ZFS volumes', none: 'no ZFS pool for disks' },
] as const;
type InVolumes = Record<(typeof IN_VOLUMES)[number]['kind'], number>;

/** What may be promised to others: neither promised already nor used by something else now. */
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
    // A file system that others have filled says nothing against one without disks.
    wanted.diskBytes === 0 ? 1 : diskBytes / Math.max(1, room.diskBytes),
    ...volumes.map((one) => one.part),
  );
  const left = `${gib(memoryMiB * MIB)} of memory, ${gib(diskBytes)} of disk, ${volumes.map(({ text }) => text).join('')}${vcpus} of ${room.cpus * VCPUS_PER_CPU} vcpus`;
  return { score: Math.floor(part * SCORE_STEPS), left };
}

/** @returns lines for the job: which node, and what stood against the others. Pure. */
export function describeChoice({ why, against }: Choice): readonly string[] {
  const lines = [...against].map(([node, reasons]) => `not on ${node}: ${reasons.join('; ')}`);
  const shown = lines.slice(0, MAX_PLACEMENT_LINES - 2);
  const rest = lines.length - shown.length;
  return [why, ...shown, ...(rest === 0 ? [] : [`nor on ${rest} other node(s)`])].map(asLine);
}

/** They go to the node that was chosen in a query, whose whole length a server bounds. */
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

/** The failure where none of the nodes fits, with the reasons of each. Pure. */
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
