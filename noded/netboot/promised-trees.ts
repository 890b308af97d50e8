import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { sha256Hex, uuid as uuidType } from '#shared/contract/primitives.ts';
import { systemCodeOf } from '#shared/errors/app-error.ts';
import { parseJson } from '#shared/json/parse-json.ts';
import type { Logger } from '#shared/log/log.ts';
import type { BootArchives } from './archives.ts';
import type { BootSource } from './boot-plan.ts';
import { type BootTree, createRepositoryTree } from '../content/downloads/boot-tree.ts';

/** What a machine was promised to load from, whatever names come to mean meanwhile. */
const promiseFile = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('archive'), sha256: sha256Hex }),
  z.strictObject({ kind: z.literal('repository'), url: z.string() }),
]);
type BootPromise = z.infer<typeof promiseFile>;

const SUFFIX = '.json';
/** Behind the name of a promise whose view metad has not taken yet. */
const OFFERED = '.new';

export interface PromisedTreesDependencies {
  /** Root's alone, and gone with the machines when the host goes down. */
  readonly dir: string;
  readonly archives: Pick<BootArchives, 'tree' | 'dropUnnamed'>;
  readonly logger: Logger;
  /** Whether a repository is below a package mirror that the administrator allows now. */
  readonly isAllowed: (url: string) => Promise<boolean>;
}

interface Offer {
  readonly promise: BootPromise | null;
  readonly settled: PromiseWithResolvers<void>;
}

/**
 * What machines load from, kept beside them: a daemon after this one serves it on. Files that are
 * on their way when one is replaced come from the old one to their end.
 */
export interface PromisedTrees {
  /** What the view is of that metad shows; while it is given another one, who asks waits. */
  find(uuid: string): Promise<BootTree | undefined>;
  /**
   * What the next view of a machine is of, which has to be settled. What it loads from now stays.
   * @param source null: nothing any more
   */
  offer(uuid: string, source: BootSource | null): void;
  /**
   * Lets go of what was before, once metad has the view that this was offered for. Where metad has
   * not taken it, both stay: the view may be put again. Without an offer it does nothing.
   */
  settle(uuid: string, isShown: boolean): void;
  /** Its machine has ended. */
  forget(uuid: string): void;
  /** Those that a daemon before this one promised; what it had offered alone, was not promised. */
  restore(): void;
  /** Others have no machine any more. */
  keepOnly(uuids: readonly string[]): void;
}

/** The files are small and in memory: they are read and written at once. */
export function createPromisedTrees(dependencies: PromisedTreesDependencies): PromisedTrees {
  const { dir, archives, isAllowed, logger } = dependencies;
  const trees = new Map<string, BootTree>();
  const offers = new Map<string, Offer>();
  const pathOf = (uuid: string): string => join(dir, `${uuid}${SUFFIX}`);
  const offeredPath = (uuid: string): string => `${pathOf(uuid)}${OFFERED}`;
  const treeOf = (promise: BootPromise): BootTree =>
    promise.kind === 'archive'
      ? archives.tree(promise.sha256)
      : whileAllowed(promise.url, isAllowed);
  /** Bytes that have waited for a machine alone. */
  const dropUnneeded = (): void => {
    archives.dropUnnamed().catch((error: unknown) => {
      logger.error('archives.not-dropped', { err: error });
    });
  };
  const endOffer = (uuid: string): void => {
    offers.get(uuid)?.settled.resolve();
    offers.delete(uuid);
  };
  const forget = (uuid: string): void => {
    trees.delete(uuid);
    endOffer(uuid);
    const paths = [pathOf(uuid), offeredPath(uuid)];
    const hadArchive = paths.some((path) => readPromise(path)?.kind === 'archive');
    for (const path of paths) rmSync(path, { force: true });
    if (hadArchive) dropUnneeded();
  };
  return {
    find: async (uuid) => {
      await offers.get(uuid)?.settled.promise;
      return trees.get(uuid);
    },
    offer: (uuid, source) => {
      const promise = source && promiseOf(source);
      if (promise === null) {
        rmSync(offeredPath(uuid), { force: true });
      } else {
        mkdirSync(dir, { recursive: true, mode: 0o700 });
        writeFileSync(offeredPath(uuid), JSON.stringify(promise), { mode: 0o600 });
      }
      endOffer(uuid);
      const isNothingNew = promise === null && !trees.has(uuid);
      if (!isNothingNew) offers.set(uuid, { promise, settled: Promise.withResolvers() });
    },
    settle: (uuid, isShown) => {
      const promise = isShown ? offers.get(uuid)?.promise : undefined;
      if (promise === null) return forget(uuid);
      if (promise !== undefined) {
        renameSync(offeredPath(uuid), pathOf(uuid));
        trees.set(uuid, treeOf(promise));
        dropUnneeded();
      }
      endOffer(uuid);
    },
    forget,
    restore: () => {
      for (const name of listFolder(dir))
        if (name.endsWith(OFFERED)) rmSync(join(dir, name), { force: true });
      for (const uuid of listPromises(dir)) {
        const promise = readPromise(pathOf(uuid));
        if (promise === null) forget(uuid);
        else trees.set(uuid, treeOf(promise));
      }
    },
    keepOnly: (uuids) => {
      for (const uuid of listPromises(dir)) if (!uuids.includes(uuid)) forget(uuid);
    },
  };
}

function promiseOf(source: BootSource): BootPromise {
  return source.kind === 'repository' ? source : { kind: 'archive', sha256: source.sha256 };
}

/** The permission is asked for with every file: it may be taken back at any time. */
function whileAllowed(url: string, isAllowed: (url: string) => Promise<boolean>): BootTree {
  const tree = createRepositoryTree(url);
  return {
    open: async (request) =>
      (await isAllowed(url))
        ? tree.open(request)
        : { kind: 'refusal', status: 404, reason: 'its repository is no longer allowed' },
  };
}

/** The contents of archives that machines were promised, or are being. */
export function listPromisedContents(dir: string): ReadonlySet<string> {
  const promises = listFolder(dir).map((name) => readPromise(join(dir, name)));
  return new Set(promises.flatMap((each) => (each?.kind === 'archive' ? [each.sha256] : [])));
}

function listPromises(dir: string): readonly string[] {
  return listFolder(dir)
    .filter((name) => name.endsWith(SUFFIX))
    .map((name) => name.slice(0, -SUFFIX.length))
    .filter((name) => uuidType.safeParse(name).success);
}

/** Null for none, or none that can be read. */
function readPromise(path: string): BootPromise | null {
  try {
    const text = readFileSync(path, 'utf8');
    return promiseFile.safeParse(parseJson(text)).data ?? null;
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return null;
    throw error;
  }
}

function listFolder(dir: string): readonly string[] {
  try {
    return readdirSync(dir);
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return [];
    throw error;
  }
}
