import { lstatSync, mkdirSync, mkdtempSync, rmSync, type Stats, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { unpackTar } from '../../../appliance/agent/overlay/package.ts';
import { isAppError } from '#shared/errors/app-error.ts';
import { unpackWithTarAlone } from './reference-tar.ts';
import { describeTree } from './tree.ts';

export type Comparison =
  /** Both made the same tree. */
  | { readonly kind: 'same' }
  /** Refused by the agent; tar's message, or null when tar accepts the archive. */
  | { readonly kind: 'refused'; readonly why: string; readonly tarSays: string | null }
  /** A defect: the agent's tree differs from tar's. */
  | { readonly kind: 'different'; readonly how: string };

/** The guest's directory in both roots; only plain tar applies the archive's owner and mode. */
const GUEST_DIRECTORY = 'd';
/** Its own line, and its extended attributes. */
const OF_GUEST_DIRECTORY = /^(\/d |# file: d\n)/;

/**
 * Unpacks an archive twice, as the installer does and with plain GNU tar, into roots with links of
 * a guest.
 */
export async function compareArchive(archive: Buffer, folder: string): Promise<Comparison> {
  const directory = mkdtempSync(join(folder, 'gnt-compare-'));
  try {
    const startedAtMs = Date.now();
    const roots = ['ours', 'theirs'].map((name) => {
      const root = join(directory, name);
      mkdirSync(join(root, GUEST_DIRECTORY), { recursive: true });
      symlinkSync('/d', join(root, 'way'));
      return root;
    }) as [string, string];
    const before = guestDirectory(roots[0]);
    const why = await unpackTar(archive, roots[0]).then(
      () => null,
      (error: unknown) => {
        if (!isAppError(error)) throw error;
        return error.message;
      },
    );
    const tarSays = await unpackWithTarAlone(archive, roots[1]);
    if (why !== null) return { kind: 'refused', why, tarSays };
    if (tarSays !== null) return { kind: 'different', how: `tar refuses it: ${tarSays}` };
    const after = guestDirectory(roots[0]);
    // Inode numbers are reused at once.
    const isKept = after?.ino === before?.ino && after?.birthtimeMs === before?.birthtimeMs;
    if (isKept && (after?.mode !== before?.mode || after?.uid !== before?.uid))
      return { kind: 'different', how: "the guest's directory has another owner or mode" };
    const [ours, theirs] = roots.map((root) =>
      describeTree(root, startedAtMs).filter((line) => !isKept || !OF_GUEST_DIRECTORY.test(line)),
    );
    const how = [
      ...(ours ?? [])
        .filter((line) => theirs?.includes(line) !== true)
        .map((line) => `ours: ${line}`),
      ...(theirs ?? [])
        .filter((line) => ours?.includes(line) !== true)
        .map((line) => `tar: ${line}`),
    ];
    return how.length === 0 ? { kind: 'same' } : { kind: 'different', how: how.join('\n') };
  } finally {
    rmSync(directory, { recursive: true });
  }
}

function guestDirectory(root: string): Stats | undefined {
  return lstatSync(join(root, GUEST_DIRECTORY), { throwIfNoEntry: false });
}

/** Reasons for refusing archives that GNU tar accepts. Any other refusal is a defect. */
export const knownRefusals: readonly RegExp[] = [
  /its name.* (is absolute|contains "\.\."|contains a NUL)/,
  /its name is empty/,
  /it links to .*, which (is absolute|is empty|contains "\.\.")/,
  /its link to .* leads out of the root/,
  // GNU tar ends a target at its first NUL.
  /its link target is not a path/,
  /it is (a named pipe|a (block|character) device|a volume label|an entry of type|a continuation)/,
  /its (size|uid|gid|mtime|mode|atime|ctime|GNU\.sparse\.\w+) .* is not a valid number/,
  /its name is a directory name, but it has content/,
  /the root must be a directory/,
  /not a usable tar\.gz archive: (the archive is empty|the archive ends|the archive has no end mark|not a tar archive|a damaged|a header|a global header|an entry with two|a sparse map)/,
];
