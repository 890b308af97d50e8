import { constants, copyFile, rename, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { systemCodeOf } from '#shared/errors/app-error.ts';
import { isHalf, syncPath } from '#shared/files/durable.ts';
import { MIB } from '#shared/units/bytes.ts';
import { listNames } from './install-disks.ts';

/** QEMU's limit for all flash of a machine. OVMF's variables need 512 KiB. */
export const MAX_VARIABLES_BYTES = 8 * MIB;
const VARIABLES = /^efi-variables-(.+)\.fd/;
/** The name in folders that no reinstallation has divided yet. */
const UNDIVIDED = 'efi-variables.fd';

/** An installation whose folder holds EFI variables. */
export interface Installation {
  readonly dir: string;
  readonly instanceId: string;
}

/**
 * Returns the path of an installation's EFI variables. Each installation has its own: boot entries
 * of the former system do not apply to the next, and return with the former one if the next fails.
 */
export function variablesPath(dir: string, instanceId: string): string {
  return join(dir, `efi-variables-${instanceId}.fd`);
}

/**
 * Copies the EFI variables with the disks: without boot entries firmware only finds the loader for
 * removable media. An instance that never ran has none.
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
 * Removes EFI variables of installations that neither the record nor a snapshot names, and files of
 * an interrupted start. Undivided variables become the record's, unless it has its own. Idempotent.
 * @returns names of the removed files
 */
export async function settleVariables(
  dir: string,
  {
    instanceId,
    installState,
    snapshots,
  }: Pick<InstanceRecord, 'instanceId' | 'installState' | 'snapshots'>,
): Promise<readonly string[]> {
  // The installation in progress may still succeed and need its variables.
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
