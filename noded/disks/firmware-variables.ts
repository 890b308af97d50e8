import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { listNames } from './install-disks.ts';

const VARIABLES = /^efi-variables-(.+)\.fd$/;

/**
 * Each installation has its own: what the system before it had entered to boot from is not asked by
 * the next one, and comes back with it when the next one fails.
 */
export function variablesPath(dir: string, instanceId: string): string {
  return join(dir, `efi-variables-${instanceId}.fd`);
}

/**
 * Takes away the variables of installations that are no more: neither the record's nor those that a
 * snapshot goes back to. Idempotent.
 * @returns names of the files that are gone
 */
export async function settleVariables(
  dir: string,
  {
    instanceId,
    installState,
    snapshots,
  }: Pick<InstanceRecord, 'instanceId' | 'installState' | 'snapshots'>,
): Promise<readonly string[]> {
  // The record may still become that of an installation whose variables these are.
  if (installState === 'installing') return [];
  const kept = new Set([instanceId, ...snapshots.map((snapshot) => snapshot.instanceId)]);
  const gone = (await listNames(dir)).filter((name) => {
    const id = VARIABLES.exec(name)?.[1];
    return id !== undefined && !kept.has(id);
  });
  for (const name of gone) await rm(join(dir, name), { force: true });
  return gone;
}
