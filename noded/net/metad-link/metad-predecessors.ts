import { readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { z } from 'zod';
import { systemCodeOf } from '#shared/errors/app-error.ts';
import { parseJson } from '#shared/json/parse-json.ts';
import { isInNetworkNamespace, userOf } from '../../host/process-facts.ts';
import { isAlive, type ProcessIdentity, readProcessIdentity } from '../../host/process-identity.ts';
import type { SystemUser } from '../../host/system-user.ts';

export interface MetadPlaces {
  /** Identity of the metad process, written by the noded that started or adopted it. */
  readonly recordFile: string;
  /** The channel's network namespace, a file below /run/netns. */
  readonly namespace: string;
  readonly user: Pick<SystemUser, 'uid'>;
}

const metadRecord = z.object({ pid: z.number(), startTicks: z.string() });

/**
 * Writes the record atomically. It is not synced: a reboot removes both the file and the process.
 */
export function recordMetad({ recordFile }: MetadPlaces, identity: ProcessIdentity): void {
  const temporary = `${recordFile}.new`;
  writeFileSync(temporary, JSON.stringify(identity), { mode: 0o600 });
  renameSync(temporary, recordFile);
}

/**
 * Finds every running metad of this node: the recorded one in any namespace, and all processes of
 * its user in the channel's namespace. The search finds a metad of an older release, or of a
 * noded that was killed before it wrote the record.
 */
export function findPredecessors(places: MetadPlaces): readonly ProcessIdentity[] {
  const found = new Map<number, ProcessIdentity>();
  const recorded = readRecord(places.recordFile);
  if (recorded && isAlive(recorded)) found.set(recorded.pid, recorded);
  for (const entry of readdirSync('/proc')) {
    const pid = Number(entry);
    if (!Number.isInteger(pid) || found.has(pid)) continue;
    if (!isInNetworkNamespace(pid, places.namespace) || userOf(pid) !== places.user.uid) continue;
    const identity = readProcessIdentity(pid);
    if (identity) found.set(pid, identity);
  }
  return [...found.values()];
}

function readRecord(path: string): ProcessIdentity | undefined {
  try {
    return metadRecord.safeParse(parseJson(readFileSync(path, 'utf8'))).data;
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}
