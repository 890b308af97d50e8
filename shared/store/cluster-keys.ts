import { createHash } from 'node:crypto';
import { rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { AppError } from '../errors/app-error.ts';
import { syncPath, writeDurably } from '../files/durable.ts';
import type { RootPaths } from '../paths/root-paths.ts';
import type { KeyRing } from './sealed-store.ts';
import { readClusterKey } from './store-choice.ts';

/** Returns a hash that tells keys apart without revealing them. */
export function fingerprintOf(key: Uint8Array): string {
  return createHash('sha256').update('cluster key\n').update(key).digest('hex');
}

/**
 * The cluster's keys on this node. A key is replaced while the node runs: the new one is learnt,
 * then it seals, then the former one is forgotten. Each step may be repeated.
 * Loads the keys.
 *
 * INVARIANT: `cluster.key` is the sealing key, also after a power failure. Beside it, readable by
 * root alone, lie the learnt key (`cluster.key.next`) and the former one (`cluster.key.before`).
 * @throws AppError STORE_KEY without any, FILE_UNREADABLE
 */
export async function loadClusterKeys(
  paths: Pick<RootPaths, 'clusterKeyFile' | 'nextClusterKeyFile' | 'formerClusterKeyFile'>,
) {
  const { clusterKeyFile, nextClusterKeyFile, formerClusterKeyFile } = paths;
  const loaded = await readClusterKey(clusterKeyFile);
  if (loaded === undefined) {
    throw new AppError('STORE_KEY', `${clusterKeyFile} does not exist`, {
      hint: 'Copy it from another node of the cluster, readable by root only.',
    });
  }
  let sealing = loaded;
  let next = await readClusterKey(nextClusterKeyFile);
  let former = await readClusterKey(formerClusterKeyFile);
  let ring = makeRing();

  function makeRing(): KeyRing {
    const others = [next, former].filter((key) => key !== undefined);
    return { sealing, opening: [sealing, ...others] };
  }
  const write = (path: string, key: Uint8Array): Promise<void> =>
    writeDurably(path, `${Buffer.from(key).toString('base64')}\n`, { mode: 0o600 });

  return {
    /** Returns the keys, in the same object until one changes. */
    ring: (): KeyRing => ring,
    /** The learnt key that does not seal yet. */
    get next() {
      return next;
    },
    /** Adds a key for opening only. */
    learn: async (key: Uint8Array): Promise<void> => {
      if (isSame(key, sealing) || isSame(key, next)) return;
      await write(nextClusterKeyFile, key);
      next = key;
      ring = makeRing();
    },
    /** Seals with the key, and still opens with the former one. */
    sealWith: async (key: Uint8Array): Promise<void> => {
      if (isSame(key, sealing)) return;
      await write(nextClusterKeyFile, key);
      await write(formerClusterKeyFile, sealing);
      await rename(nextClusterKeyFile, clusterKeyFile);
      await syncPath(dirname(clusterKeyFile));
      [former, sealing, next] = [sealing, key, undefined];
      ring = makeRing();
    },
    /**
     * Forgets every key but the sealing one. @throws AppError CONFLICT when that is a different key
     */
    forgetOthers: async (fingerprint: string): Promise<void> => {
      if (fingerprintOf(sealing) !== fingerprint)
        throw new AppError('CONFLICT', 'this node seals with a different cluster key');
      await rm(nextClusterKeyFile, { force: true });
      await rm(formerClusterKeyFile, { force: true });
      await syncPath(dirname(clusterKeyFile));
      [next, former] = [undefined, undefined];
      ring = makeRing();
    },
  };
}

export type ClusterKeys = Awaited<ReturnType<typeof loadClusterKeys>>;

function isSame(a: Uint8Array, b: Uint8Array | undefined): boolean {
  return b !== undefined && Buffer.from(a).equals(b);
}
