import { readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { z } from 'zod';
import { systemCodeOf } from '#shared/errors/app-error.ts';
import { parseJson } from '#shared/json/parse-json.ts';
import { isInNetworkNamespace, userOf } from '../../host/process-facts.ts';
import { isAlive, type ProcessIdentity, readProcessIdentity } from '../../host/process-identity.ts';
import type { SystemUser } from '../../host/system-user.ts';

export interface MetadPlaces {
  /** Which process is metad, as the noded that started or adopted it wrote it down. */
  readonly recordFile: string;
  /** The channel's network namespace, a file below /run/netns. */
  readonly namespace: string;
  readonly user: Pick<SystemUser, 'uid'>;
}

const metadRecord = z.object({ pid: z.number(), startTicks: z.string() });

/**
 * Writes the record whole or not at all. It is not synced: the file goes with the machine's boot,
 * and so does the process.
 */
export function recordMetad({ recordFile }: MetadPlaces, identity: ProcessIdentity): void {
  const temporary = `${recordFile}.new`;
  writeFileSync(temporary, JSON.stringify(identity), { mode: 0o600 });
  renameSync(temporary, recordFile);
}

/**
 * Every living metad of this node: the one on record, in whatever namespace it is, and all
 * processes of its user in the channel's namespace, which is nobody else's. The latter finds one
 * that an older release started, or a noded that was killed before it wrote.
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
