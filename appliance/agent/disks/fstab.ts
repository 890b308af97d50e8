import { posix } from 'node:path';

export interface FstabEntry {
  readonly source: string;
  readonly mountPoint: string;
  readonly type: string;
  readonly options: readonly string[];
}

/** Network, memory and pseudo file systems are not on the instance's disks. */
const DISK_TYPES = new Set(['ext2', 'ext3', 'ext4', 'xfs', 'btrfs', 'vfat', 'auto']);

/** PATH_MAX without its NUL, and NAME_MAX (limits.h), which mount points cannot exceed. */
const MAX_PATH_BYTES = 4095;
const MAX_NAME_BYTES = 255;

/** A usual fstab has a dozen mounts. Further lines are ignored. */
export const MAX_FSTAB_ENTRIES = 128;

/**
 * Parses the mounts below the root at boot, parents first (fstab(5); blanks are `\040`). Mount
 * points are normalized as by mount(8). Invalid lines and `noauto` are left out.
 */
export function parseFstab(text: string): FstabEntry[] {
  const entries: FstabEntry[] = [];
  for (const line of text.split('\n')) {
    const fields = line.trim().split(/[ \t]+/);
    const [source, directory, type, options = 'defaults'] = fields.map(unescapeOctal);
    if (!source || source.startsWith('#') || !directory?.startsWith('/') || !type) continue;
    const mountPoint = posix.resolve('/', directory);
    const words = options.split(',');
    if (mountPoint === '/' || !DISK_TYPES.has(type) || words.includes('noauto')) continue;
    if (!isPath(mountPoint) || options.includes('\0')) continue;
    entries.push({ source, mountPoint, type, options: words });
    if (entries.length === MAX_FSTAB_ENTRIES) break;
  }
  return entries.sort((a, b) => a.mountPoint.split('/').length - b.mountPoint.split('/').length);
}

function isPath(text: string): boolean {
  return (
    !text.includes('\0') &&
    Buffer.byteLength(text) <= MAX_PATH_BYTES &&
    text.split('/').every((name) => Buffer.byteLength(name) <= MAX_NAME_BYTES)
  );
}

export function findRootSource(text: string): string | null {
  const line = text
    .split('\n')
    .map((each) => each.trim().split(/[ \t]+/))
    .find(([source, directory]) => source?.startsWith('#') === false && directory === '/');
  return line?.[0] === undefined ? null : unescapeOctal(line[0]);
}

/** Decodes octal escapes of fstab(5) and proc_pid_mounts(5). */
export function unescapeOctal(field: string): string {
  return field.replace(/\\([0-7]{3})/g, (_, octal: string) =>
    String.fromCharCode(Number.parseInt(octal, 8)),
  );
}

export interface FileSystem {
  /** Device node inside the appliance. */
  readonly path: string;
  /** Further names of the device: `/dev/vg/lv`, `/dev/mapper/vg-lv`. */
  readonly aliases: readonly string[];
  readonly type: string;
  readonly uuid: string | null;
  readonly label: string | null;
  readonly partUuid: string | null;
  readonly partLabel: string | null;
  /** GPT: the type's GUID in lower case; MBR: `0x83`. Null for whole disks and volumes. */
  readonly partType: string | null;
  /**
   * Position of the instance's disk, from 0, and the partition's number; null for other devices.
   */
  readonly diskIndex: number | null;
  readonly partition: number | null;
}

/** Finds the file system of an fstab source. Names such as /dev/sda1 count disks by letter. */
export function matchFstabSource(
  source: string,
  fileSystems: readonly FileSystem[],
): FileSystem | null {
  const [, key, quoted] = /^(UUID|LABEL|PARTUUID|PARTLABEL)=(.*)$/.exec(source) ?? [];
  const value = quoted?.replace(/^"(.*)"$/, '$1');
  const [, directory, name] =
    /^\/dev\/disk\/by-(uuid|label|partuuid|partlabel)\/(.*)$/.exec(source) ?? [];
  const wanted = (key ?? directory)?.toLowerCase();
  const text = value ?? name;
  if (wanted !== undefined && text !== undefined) return findByTag(fileSystems, wanted, text);
  const [, letter, number] = /^\/dev\/(?:x?v|s|h)d([a-z])(\d*)$/.exec(source) ?? [];
  if (letter !== undefined) {
    const diskIndex = letter.charCodeAt(0) - 'a'.charCodeAt(0);
    const partition = number ? Number(number) : null;
    return (
      fileSystems.find(
        (candidate) => candidate.diskIndex === diskIndex && candidate.partition === partition,
      ) ?? null
    );
  }
  return fileSystems.find((candidate) => candidate.aliases.includes(source)) ?? null;
}

/** Matches in the same case first: `Data` and `data` are two labels. */
function findByTag(
  fileSystems: readonly FileSystem[],
  tag: string,
  text: string,
): FileSystem | null {
  const find = (isMeant: (found: string) => boolean): FileSystem | undefined =>
    fileSystems.find((candidate) => {
      const found = tagOf(candidate, tag);
      return found !== null && isMeant(found);
    });
  const lower = text.toLowerCase();
  return find((found) => found === text) ?? find((found) => found.toLowerCase() === lower) ?? null;
}

function tagOf(fileSystem: FileSystem, tag: string): string | null {
  if (tag === 'uuid') return fileSystem.uuid;
  if (tag === 'label') return fileSystem.label;
  return tag === 'partuuid' ? fileSystem.partUuid : fileSystem.partLabel;
}
