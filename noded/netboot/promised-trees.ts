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

/** The content that an instance loads from, whatever its name means later. */
const promiseFile = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('archive'), sha256: sha256Hex }),
  z.strictObject({ kind: z.literal('repository'), url: z.string() }),
]);
type BootPromise = z.infer<typeof promiseFile>;

const SUFFIX = '.json';
/** Suffix of a promise whose view gnt-metad has not accepted yet. */
const OFFERED = '.new';

export interface PromisedTreesDependencies {
  /** Accessible to root only, and cleared at each boot of the host, as instances are. */
  readonly dir: string;
  readonly archives: Pick<BootArchives, 'tree' | 'dropUnnamed'>;
  readonly logger: Logger;
  readonly isAllowed: (url: string) => Promise<boolean>;
}

interface Offer {
  readonly promise: BootPromise | null;
  readonly settled: PromiseWithResolvers<void>;
}

/**
 * Sources that instances load from. They are kept in files, so that a restarted daemon serves them.
 * A transfer that runs while a source is replaced ends with the old source.
 * Reads and writes synchronously: the files are small and in memory.
 */
export function createPromisedTrees(dependencies: PromisedTreesDependencies) {
  const { dir, archives, isAllowed, logger } = dependencies;
  const trees = new Map<string, BootTree>();
  const offers = new Map<string, Offer>();
  const pathOf = (uuid: string): string => join(dir, `${uuid}${SUFFIX}`);
  const offeredPath = (uuid: string): string => `${pathOf(uuid)}${OFFERED}`;
  const treeOf = (promise: BootPromise): BootTree =>
    promise.kind === 'archive'
      ? archives.tree(promise.sha256)
      : whileAllowed(promise.url, isAllowed);
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
    /**
     * Returns the source of the view that gnt-metad shows. Waits while gnt-metad receives another
     * view.
     */
    find: async (uuid: string): Promise<BootTree | undefined> => {
      await offers.get(uuid)?.settled.promise;
      return trees.get(uuid);
    },
    /**
     * Sets the source of an instance's next view, until `settle`. The present source stays.
     * @param source null: the instance loads no files
     */
    offer: (uuid: string, source: BootSource | null): void => {
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
    /**
     * Drops the previous source once gnt-metad has the offered view. Keeps both when gnt-metad has
     * not accepted it: the view may be pushed again. Does nothing without an offer.
     */
    settle: (uuid: string, isShown: boolean): void => {
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
    /** Restores the promises of an earlier daemon. Offers that were not settled are dropped. */
    restore: (): void => {
      for (const name of listFolder(dir))
        if (name.endsWith(OFFERED)) rmSync(join(dir, name), { force: true });
      for (const uuid of listPromises(dir)) {
        const promise = readPromise(pathOf(uuid));
        if (promise === null) forget(uuid);
        else trees.set(uuid, treeOf(promise));
      }
    },
    /** Forgets all other instances, which do not run. */
    keepOnly: (uuids: readonly string[]): void => {
      for (const uuid of listPromises(dir)) if (!uuids.includes(uuid)) forget(uuid);
    },
  };
}

export type PromisedTrees = ReturnType<typeof createPromisedTrees>;

function promiseOf(source: BootSource): BootPromise {
  return source.kind === 'repository' ? source : { kind: 'archive', sha256: source.sha256 };
}

/** Checks the permission for each file, since it can be removed at any time. */
function whileAllowed(url: string, isAllowed: (url: string) => Promise<boolean>): BootTree {
  const tree = createRepositoryTree(url);
  return {
    open: async (request) =>
      (await isAllowed(url))
        ? tree.open(request)
        : { kind: 'refusal', status: 404, reason: 'its repository is no longer allowed' },
  };
}

/** Returns the archives' contents that are promised or offered to instances. */
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
