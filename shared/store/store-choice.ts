import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { AppError, messageOf, systemCodeOf } from '../errors/app-error.ts';
import { makeDirectoryDurably, writeDurably } from '../files/durable.ts';
import type { RootPaths } from '../paths/root-paths.ts';
import { CLUSTER_KEY_BYTES } from './sealed-store.ts';

/** The membership of a node in a cluster with a common store. */
export interface StoreChoice {
  /** May have a password: show it by `describeStoreUrl` only. */
  readonly url: string;
  /** UUID of the cluster: the node refuses an emptied store. */
  readonly cluster: string;
  /**
   * UUID of the cluster in the embedded store that this choice replaced; null for a store without a
   * cluster. This file is the commit point: gnt-noded sets such a store aside when a kill left it.
   */
  readonly replaces?: string | null | undefined;
}

const storeChoice = z.strictObject({
  url: z.string(),
  cluster: z.uuid(),
  replaces: z.uuid().nullable().optional(),
});

/**
 * @returns undefined before `gnt-cluster init --store`
 * @throws AppError FILE_UNREADABLE
 */
export async function readStoreChoice(paths: RootPaths): Promise<StoreChoice | undefined> {
  const text = await readIfThere(paths.storeChoiceFile);
  if (text === undefined) return undefined;
  try {
    return storeChoice.parse(JSON.parse(text));
  } catch {
    // The parser's message quotes the text, which may hold a password.
    throw unreadable(
      paths.storeChoiceFile,
      'it does not have the format that gnt-cluster init --store writes',
    );
  }
}

export async function writeStoreChoice(paths: RootPaths, choice: StoreChoice): Promise<void> {
  await writeNew(paths, paths.storeChoiceFile, `${JSON.stringify(choice)}\n`);
}

/** @returns undefined when there is no such file. @throws AppError FILE_UNREADABLE */
export async function readClusterKey(path: string): Promise<Uint8Array | undefined> {
  const text = await readIfThere(path);
  if (text === undefined) return undefined;
  const key = Buffer.from(text.trim(), 'base64');
  if (key.length === CLUSTER_KEY_BYTES && key.toString('base64') === text.trim()) return key;
  throw unreadable(path, `it is not a cluster key: expected ${CLUSTER_KEY_BYTES} bytes in base64`);
}

export async function writeClusterKey(paths: RootPaths, key: Uint8Array): Promise<void> {
  await writeNew(paths, paths.clusterKeyFile, `${Buffer.from(key).toString('base64')}\n`);
}

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return undefined;
    throw unreadable(path, messageOf(error), error);
  }
}

/** Writes a file for its owner only; never overwrites one. */
async function writeNew(paths: RootPaths, path: string, text: string): Promise<void> {
  try {
    await makeDirectoryDurably(paths.stateDir, 0o755);
    await writeDurably(path, text, { mode: 0o600, isNew: true });
  } catch (error) {
    throw unreadable(path, messageOf(error), error);
  }
}

function unreadable(path: string, reason: string, cause?: unknown): AppError {
  return new AppError('FILE_UNREADABLE', `cannot use ${path}: ${reason}`, {
    hint: 'Run this as root. For a cluster key, copy var/lib/gnt/cluster.key from another node of the cluster.',
    cause,
  });
}
