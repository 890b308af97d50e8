import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { AppError, isAppError, systemCodeOf } from '#shared/errors/app-error.ts';
import { ownValue } from '#shared/json/own-value.ts';
import {
  type EmbeddedStore,
  readEmbeddedStore,
  setAsideEmbeddedStore,
} from '#shared/store/embedded-store.ts';
import { claimRoot } from '#shared/sys/claim-root.ts';
import type { Context } from '../../terminal/context.ts';

/** A root without a running gnt-noded, whose embedded store a common store may replace. */
export interface ReplaceableStore extends Disposable {
  /** For the store choice; undefined if this root has no embedded store. */
  readonly replaces: string | null | undefined;
  /** Sets the embedded store aside after the store choice was written, and prints its content. */
  finish(): Promise<void>;
}

const SHOWN_NAMES = 5;
const WORDS: Readonly<Record<string, string>> = {
  os: 'settings and trust of OS definitions',
  profiles: 'profiles',
  networks: 'networks',
  bootenvs: 'boot environments',
};

/**
 * Keeps gnt-noded from starting on this root until it is disposed.
 * @throws AppError CONFLICT while gnt-noded runs or the embedded store has instances; NOT_ROOT,
 * FILE_UNREADABLE. Nothing is changed then.
 */
export async function claimReplaceableStore(context: Context): Promise<ReplaceableStore> {
  const { storeFile, outcomesDir } = context.paths;
  const read = (): EmbeddedStore | undefined =>
    existsSync(storeFile) ? readEmbeddedStore(storeFile) : undefined;
  // First, because instances take the operator longer to deal with than a running daemon.
  refuseInstances(context, read());
  const release = claim(context);
  try {
    const embedded = read();
    refuseInstances(context, embedded);
    if (embedded !== undefined) await refuseUnwritten(outcomesDir);
    return {
      replaces: embedded?.cluster,
      finish: async () => {
        if (embedded === undefined) return;
        const kept = await setAsideEmbeddedStore(context.paths, context.clock);
        context.note(describeKept(embedded, kept));
      },
      [Symbol.dispose]: release,
    };
  } catch (error) {
    release();
    throw error;
  }
}

function refuseInstances({ paths }: Context, embedded: EmbeddedStore | undefined): void {
  const [first, ...others] = embedded?.instances ?? [];
  if (first === undefined) return;
  const shown = [first, ...others].slice(0, SHOWN_NAMES).join(', ');
  const more = others.length >= SHOWN_NAMES ? ` and ${others.length + 1 - SHOWN_NAMES} more` : '';
  throw new AppError(
    'CONFLICT',
    `this node has instances in its embedded store ${paths.storeFile}: ${shown}${more}`,
    {
      hint: `Take each instance to the cluster by an export: gnt-backup export ${first}; gnt-instance remove ${first}; after the node has joined: gnt-backup import ${first}`,
      details: { instances: [first, ...others] },
    },
  );
}

function claim({ paths }: Context): () => void {
  try {
    return claimRoot(paths);
  } catch (error) {
    if (isAppError(error, 'CONFLICT')) {
      throw new AppError('CONFLICT', `gnt-noded is running on ${paths.root}`, {
        hint: 'Stop it, repeat this command, and start it again: systemctl stop gnt-noded',
        cause: error,
      });
    }
    if (systemCodeOf(error) !== 'EACCES') throw error;
    throw new AppError('NOT_ROOT', `${paths.runDir} is not writable for this user`, {
      hint: 'Run this command as root',
      cause: error,
    });
  }
}

/**
 * Refuses while outcomes of jobs wait for gnt-noded to store them: they belong to the embedded
 * store.
 */
async function refuseUnwritten(outcomesDir: string): Promise<void> {
  const names = await readdir(outcomesDir).catch((error: unknown) => {
    if (systemCodeOf(error) === 'ENOENT') return [];
    throw error;
  });
  const count = names.filter((name) => name.endsWith('.json')).length;
  if (count === 0) return;
  throw new AppError(
    'CONFLICT',
    `gnt-noded has not yet written the end of ${count} job(s) to the embedded store`,
    {
      hint: 'Let it write them, then repeat this command: systemctl restart gnt-noded; systemctl stop gnt-noded',
    },
  );
}

function describeKept({ others }: EmbeddedStore, path: string): string {
  const counts = [...others].map(([name, count]) => `${ownValue(WORDS, name)} (${count})`);
  const left = ['cluster settings', 'jobs', ...counts].join(', ');
  return `the embedded store is now ${path}; it keeps the former ${left}, and the cluster does not have them`;
}
