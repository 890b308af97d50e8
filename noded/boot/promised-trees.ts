import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { sha256Hex, uuid as uuidType } from '#shared/contract/primitives.ts';
import { systemCodeOf } from '#shared/errors/app-error.ts';
import { parseJson } from '#shared/json/parse-json.ts';
import type { Logger } from '#shared/log/log.ts';
import type { BootArchives } from './archives.ts';
import type { BootSource } from './boot-plan.ts';
import { type BootTree, type BootTrees, createRepositoryTree } from './boot-tree.ts';

/** What a machine was promised to load from, whatever names come to mean meanwhile. */
const promiseFile = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('archive'), sha256: sha256Hex }),
  z.strictObject({ kind: z.literal('repository'), url: z.string() }),
]);
type BootPromise = z.infer<typeof promiseFile>;

const SUFFIX = '.json';
/** Of one that is being written. */
const UNFINISHED = '.new';

export interface PromisedTreesDependencies {
  /** Root's alone, and gone with the machines when the host goes down. */
  readonly dir: string;
  readonly trees: BootTrees;
  readonly archives: Pick<BootArchives, 'tree' | 'dropUnnamed'>;
  readonly logger: Logger;
  /** Whether a repository is below a package mirror that the administrator allows now. */
  readonly isAllowed: (url: string) => Promise<boolean>;
}

/** What machines load from, kept beside them: a daemon after this one serves it on. */
export interface PromisedTrees {
  /** @param source null: nothing any more */
  set(uuid: string, source: BootSource | null): void;
  /** Those that a daemon before this one promised; what it did not finish, was not promised. */
  restore(): void;
  /** Others have no machine any more. */
  keepOnly(uuids: readonly string[]): void;
}

/** The files are small and in memory: they are read and written at once. */
export function createPromisedTrees(dependencies: PromisedTreesDependencies): PromisedTrees {
  const { dir, trees, archives, isAllowed, logger } = dependencies;
  const pathOf = (uuid: string): string => promisePath(dir, uuid);
  const treeOf = (promise: BootPromise): BootTree =>
    promise.kind === 'archive'
      ? archives.tree(promise.sha256)
      : whileAllowed(promise.url, isAllowed);
  /** Its bytes, where they have waited for it alone. */
  const dropFormer = (promise: BootPromise | null): void => {
    if (promise?.kind !== 'archive') return;
    archives.dropUnnamed().catch((error: unknown) => {
      logger.error('archives.not-dropped', { err: error });
    });
  };
  const forget = (uuid: string): void => {
    trees.set(uuid, null);
    const promise = readPromise(dir, uuid);
    rmSync(pathOf(uuid), { force: true });
    dropFormer(promise);
  };
  return {
    set: (uuid, source) => {
      if (source === null) return forget(uuid);
      const promise = promiseOf(source);
      const former = readPromise(dir, uuid);
      trees.set(uuid, treeOf(promise));
      mkdirSync(dir, { recursive: true, mode: 0o700 });
      writeFileSync(`${pathOf(uuid)}${UNFINISHED}`, JSON.stringify(promise), { mode: 0o600 });
      renameSync(`${pathOf(uuid)}${UNFINISHED}`, pathOf(uuid));
      dropFormer(former);
    },
    restore: () => {
      for (const name of listFolder(dir))
        if (name.endsWith(UNFINISHED)) rmSync(join(dir, name), { force: true });
      for (const uuid of listPromises(dir)) {
        const promise = readPromise(dir, uuid);
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
        : { kind: 'refusal', status: 404, reason: 'its repository is not allowed any more' },
  };
}

/** The contents of archives that machines were promised. */
export function listPromisedContents(dir: string): ReadonlySet<string> {
  const promises = listPromises(dir).map((uuid) => readPromise(dir, uuid));
  return new Set(promises.flatMap((each) => (each?.kind === 'archive' ? [each.sha256] : [])));
}

function promisePath(dir: string, uuid: string): string {
  return join(dir, `${uuid}${SUFFIX}`);
}

function listPromises(dir: string): readonly string[] {
  return listFolder(dir)
    .filter((name) => name.endsWith(SUFFIX))
    .map((name) => name.slice(0, -SUFFIX.length))
    .filter((name) => uuidType.safeParse(name).success);
}

/** Null for none, or none that can be read. */
function readPromise(dir: string, uuid: string): BootPromise | null {
  try {
    const text = readFileSync(promisePath(dir, uuid), 'utf8');
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
