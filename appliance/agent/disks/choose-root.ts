import { AppError } from '#shared/errors/app-error.ts';
import type { FileSystem } from './fstab.ts';

export type ForeignTree = 'boot files' | 'an ostree repository';

export interface Candidate {
  readonly fileSystem: FileSystem;
  readonly subvolume: string | null;
  /** Likelihood of a root: 0 is best. Null without a mark of a root. */
  readonly rank: number | null;
  readonly foreign: ForeignTree | null;
}

/**
 * Partition types of boot loaders: the EFI system partition and the extended boot partition, for
 * GPT and for MBR (UAPI Discoverable Partitions and Boot Loader Specifications).
 */
const BOOT_PARTITION_TYPES: ReadonlySet<string> = new Set([
  'c12a7328-f81f-11d2-ba4b-00a0c93ec93b',
  'bc13c2ff-59e6-4262-a352-b275fd6f7172',
  '0xef',
  '0xea',
]);
/** Types that blkid reports for devices that cannot hold a root themselves. */
const NO_ROOT_TYPES: ReadonlySet<string> = new Set(['swap', 'LVM2_member']);
const MAX_NAMED = 20;

export function isBootPartition({ partType }: FileSystem): boolean {
  return partType !== null && BOOT_PARTITION_TYPES.has(partType);
}

/** Whether no other file system on the disks can be the root. */
export function isAlone(fileSystem: FileSystem, all: readonly FileSystem[]): boolean {
  return all.every((other) => other === fileSystem || NO_ROOT_TYPES.has(other.type));
}

/**
 * Chooses the root: the best mark wins, then the position. A file system without a mark is the root
 * only when it is alone: a package must not land on a boot or data partition. Pure.
 * @throws AppError NOTHING_TO_MOUNT that lists the file systems found
 */
export function chooseRoot(
  candidates: readonly Candidate[],
  all: readonly FileSystem[],
): Candidate {
  const marked = candidates.filter(({ rank }) => rank !== null);
  const [best] = marked.sort((a, b) => (a.rank ?? 0) - (b.rank ?? 0));
  if (best) return best;
  const only = candidates.find(({ subvolume }) => subvolume === null);
  if (only && only.foreign === null && isAlone(only.fileSystem, all)) return only;
  throw candidates.length === 0 && !all.some(isBootPartition)
    ? nothingToMount(all)
    : noRoot(candidates, all);
}

/** Describes a file system that was not chosen. The guest may boot from an equally ranked one. */
export function describeOther(other: Candidate, root: Candidate): string {
  const looks = `${describeRoot(other)} also looks like a root file system`;
  if (other.rank !== root.rank) return `${looks}; using ${describeRoot(root)}, the better match`;
  return `warning: ${looks}, as much as ${describeRoot(root)}; using ${describeRoot(root)}, the first. A guest that boots from ${describeRoot(other)} does not see the changes.`;
}

export function describeRoot({
  fileSystem: { path, type },
  subvolume,
}: Pick<Candidate, 'fileSystem' | 'subvolume'>): string {
  return `${path} (${type}${subvolume === null ? '' : `, subvolume ${subvolume}`})`;
}

function noRoot(candidates: readonly Candidate[], all: readonly FileSystem[]): AppError {
  const foreign = (fileSystem: FileSystem): ForeignTree | null =>
    candidates.find((each) => each.fileSystem === fileSystem)?.foreign ?? null;
  const seen = all.slice(0, MAX_NAMED).map((fileSystem) => {
    const { path, type, label } = fileSystem;
    const holds = isBootPartition(fileSystem) ? 'boot partition' : foreign(fileSystem);
    const facts = [type, label === null ? null : `label ${label}`, holds];
    return `${path} (${facts.filter((fact) => fact !== null).join(', ')})`;
  });
  const isOstree = all.some((each) => foreign(each) === 'an ostree repository');
  return new AppError(
    'NOTHING_TO_MOUNT',
    `no file system on the disks of the instance looks like a root file system: ${seen.join(', ')}`,
    {
      hint: isOstree
        ? 'The guest composes its root from the ostree repository. Configure it with --user-data instead of a package or hook.'
        : (encryptionHint(all) ??
          'A root file system has /etc or /usr/lib/os-release. Use another image, configure the guest with --user-data, or write the files in an OS script.'),
    },
  );
}

function nothingToMount(all: readonly FileSystem[]): AppError {
  const seen = all
    .slice(0, MAX_NAMED)
    .map(({ path, type }) => `${path} (${type})`)
    .join(', ');
  const isNtfs = all.some(({ type }) => type === 'ntfs');
  return new AppError(
    'NOTHING_TO_MOUNT',
    seen === ''
      ? 'the disks of the instance hold no file system'
      : `no file system on the disks can be mounted: ${seen}`,
    {
      hint:
        encryptionHint(all) ??
        (isNtfs
          ? 'The appliance cannot write NTFS. Use a script of your OS definition, or configure the guest with --user-data.'
          : 'The package needs an ext4, xfs, btrfs or vfat file system on a disk, a partition or a logical volume. If the partition table is broken, use another image.'),
    },
  );
}

function encryptionHint(all: readonly FileSystem[]): string | null {
  return all.some(({ type }) => type === 'crypto_LUKS' || type === 'BitLocker')
    ? 'The disk is encrypted. Use another image, or open the disk in an OS script with the key as a secret parameter and write the files there.'
    : null;
}
