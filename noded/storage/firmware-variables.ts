import { constants, copyFile, rename, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { systemCodeOf } from '#shared/errors/app-error.ts';
import { isHalf, syncPath } from '#shared/files/durable.ts';
import { MIB } from '#shared/units/bytes.ts';
import { listNames } from './install-disks.ts';

/** QEMU gives all of a machine's flash no more than this. OVMF's variables have half a MiB. */
export const MAX_VARIABLES_BYTES = 8 * MIB;
const VARIABLES = /^efi-variables-(.+)\.fd/;
/** As they are called where no reinstallation told them apart yet. */
const UNDIVIDED = 'efi-variables.fd';

/** One that an instance's folder has variables of. */
export interface Installation {
  readonly dir: string;
  readonly instanceId: string;
}

/**
 * Each installation has its own: what the system before it had entered to boot from is not asked by
 * the next one, and comes back with it when the next one fails.
 */
export function variablesPath(dir: string, instanceId: string): string {
  return join(dir, `efi-variables-${instanceId}.fd`);
}

/**
 * Gives a copy of the disks the variables that the system on them was entered in: firmware finds no
 * other loader than the one for removable media by itself. One that has not run has none.
 */
export async function copyVariables(from: Installation, to: Installation): Promise<void> {
  const target = variablesPath(to.dir, to.instanceId);
  try {
    await copyFile(variablesPath(from.dir, from.instanceId), target, constants.COPYFILE_EXCL);
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return;
    throw error;
  }
  await syncPath(target);
}

/**
 * Takes away the variables of installations that are no more: neither the record's nor those that a
 * snapshot goes back to; and what a start did not finish that was killed. Undivided ones become the
 * record's, unless it has its own. Idempotent.
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
  const names = await listNames(dir);
  const own = variablesPath(dir, instanceId);
  if (names.includes(UNDIVIDED) && !names.includes(basename(own)))
    await rename(join(dir, UNDIVIDED), own);
  const gone = names.filter((name) => {
    const id = VARIABLES.exec(name)?.[1];
    return name === UNDIVIDED || (id !== undefined && (!kept.has(id) || isHalf(name)));
  });
  for (const name of gone) await rm(join(dir, name), { force: true });
  return gone;
}
