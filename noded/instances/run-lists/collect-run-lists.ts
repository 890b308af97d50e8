import type { FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import {
  type Attachment,
  MAX_RUN_LIST_SCRIPTS,
  MAX_RUN_LISTS_BYTES,
  RUN_LISTS,
  type RunListName,
  type RunLists,
  runListScript,
  type RunListScript,
} from '#shared/contract/lifecycle.ts';
import { AppError, messageOf } from '#shared/errors/app-error.ts';
import { openHookFolder, readHookFolder } from '#shared/files/read-hook-folder.ts';

/** Scripts of an instance, in their order. */
export interface CollectedLists {
  readonly lists: Readonly<Record<RunListName, readonly RunListScript[]>>;
  readonly attachments: readonly Attachment[];
}

export interface RunListPlaces {
  /** Folder of the cluster. */
  readonly clusterDir: string;
  /** Folder of the OS definition. */
  readonly osPath: string | null;
  /** Run lists of the instance itself. */
  readonly own: RunLists | null;
}

/** A definition may have no run lists. Links are not followed, as they leave the definition. */
const OWN_ALONE = { followLinks: false, mayBeMissing: true };

/**
 * Collects the scripts of an instance from the cluster, the OS definition (both ordered by name)
 * and the instance itself. Only the guest executes them.
 * @returns null without scripts
 * @throws AppError RUN_LIST_INVALID naming the file
 */
export async function collectRunLists(places: RunListPlaces): Promise<CollectedLists | null> {
  const { clusterDir, osPath, own } = places;
  await using ofOs = osPath === null ? null : await openOwn(join(osPath, 'run-lists'));
  const collect = async (list: RunListName): Promise<RunListScript[]> => [
    ...(await readFolder(join(clusterDir, list), { followLinks: true })),
    ...(ofOs === null || osPath === null
      ? []
      : await readFolder(`/proc/self/fd/${ofOs.fd}/${list}`, {
          followLinks: false,
          shownAs: join(osPath, 'run-lists', list),
        })),
    ...(own?.[list] ?? []),
  ];
  const lists = {
    boot: await collect('boot'),
    operational: await collect('operational'),
    decommission: await collect('decommission'),
  };
  const scripts = RUN_LISTS.flatMap((list) => lists[list]);
  if (scripts.length === 0) return null;
  const attachments = own?.attachments ?? [];
  const bytes = [...scripts, ...attachments].reduce(
    (sum, { content }) => sum + Buffer.byteLength(content, 'base64'),
    0,
  );
  if (scripts.length > MAX_RUN_LIST_SCRIPTS)
    throw tooMuch(`${scripts.length} scripts, the limit is ${MAX_RUN_LIST_SCRIPTS}`);
  if (bytes > MAX_RUN_LISTS_BYTES)
    throw tooMuch(`${bytes} bytes, the limit is ${MAX_RUN_LISTS_BYTES}`);
  return { lists, attachments };
}

interface ReadOptions {
  readonly followLinks: boolean;
  /** Path for messages, when it differs. */
  readonly shownAs?: string;
}

async function openOwn(folder: string): Promise<FileHandle | null> {
  return await openHookFolder(folder, OWN_ALONE).catch((error: unknown) => {
    throw unreadable(folder, messageOf(error), error);
  });
}

async function readFolder(
  folder: string,
  { followLinks, shownAs = folder }: ReadOptions,
): Promise<RunListScript[]> {
  const files = await readHookFolder(folder, {
    followLinks,
    mayBeMissing: true,
    // Skips leftovers of editors and packages.
    accepts: (name) => !/^\.|~$|\.(dpkg|rpm|bak|sw)/.test(name),
  }).catch((error: unknown) => {
    throw unreadable(shownAs, messageOf(error).replaceAll(folder, shownAs), error);
  });
  return files.map((file) => {
    const script = runListScript.safeParse(file);
    if (script.success) return script.data;
    const [issue] = script.error.issues;
    throw new AppError(
      'RUN_LIST_INVALID',
      `run list ${join(shownAs, file.name)}: ${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}`,
      { hint: 'A script begins with #! and the path of its interpreter.' },
    );
  });
}

function unreadable(folder: string, why: string, cause: unknown): AppError {
  return new AppError('RUN_LIST_INVALID', `run list ${folder}: ${why}`, {
    hint: 'A run list is a folder of at most 64 scripts of at most 1 MiB each.',
    cause,
  });
}

function tooMuch(what: string): AppError {
  return new AppError(
    'RUN_LIST_INVALID',
    `the run lists of cluster, OS definition and instance have ${what}`,
    { hint: 'Remove some. A script can download large files itself.' },
  );
}
