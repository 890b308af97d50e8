import { open, rm } from 'node:fs/promises';
import { run } from '#shared/process/run.ts';
import { KIB, MIB } from '#shared/units/bytes.ts';
import { tieToDaemon } from '../host/child-supervisor.ts';

const SECTOR_BYTES = 512;
/** Size of a FAT12 floppy. The documents are usually a few KiB. */
const FLOPPY_BYTES = 1440 * KIB;
/** An upper limit for FAT's own structures on a floppy. */
const FAT_BYTES = 64 * KIB;
/** The label that cloud-init's NoCloud looks for, on a file system that every kernel reads. */
const LABEL = 'CIDATA';

/** The files of a seed disk, by cloud-init's names. */
export const SEED_FILES = ['meta-data', 'network-config', 'user-data', 'vendor-data'] as const;
/**
 * The same documents that the metadata service offers, complete. A guest whose channel fails is
 * then configured too. A reader other than cloud-init (yip, of Kairos) would take an `#include` for
 * the user's document.
 */
export type SeedDocuments = Readonly<Record<(typeof SEED_FILES)[number], Buffer>>;

/**
 * Writes a read-only seed disk with mtools, without mounting it. It holds the user's data, so only
 * root can open it.
 */
export async function writeSeedDisk(path: string, documents: SeedDocuments): Promise<void> {
  await rm(path, { force: true });
  const sizeBytes = sizeFor(documents);
  {
    await using file = await open(path, 'w', 0o600);
    await file.truncate(sizeBytes);
  }
  // Fixed serial number and dates: the same documents give the same disk.
  const environment = { MTOOLS_SKIP_CHECK: '1', SOURCE_DATE_EPOCH: '0' };
  const mtool = (
    name: string,
    args: readonly string[],
    input: string | Buffer = '',
  ): Promise<unknown> => {
    const mortal = tieToDaemon(name, ['-i', path, ...args]);
    return run(mortal.command, mortal.args, { input, env: environment });
  };
  const geometry = ['-T', String(sizeBytes / SECTOR_BYTES), '-h', '2', '-s', '18'];
  await mtool('mformat', [...geometry, '-v', LABEL, '-N', '67696400', '::']);
  for (const name of SEED_FILES) await mtool('mcopy', ['-', `::${name}`], documents[name]);
}

function sizeFor(documents: SeedDocuments): number {
  const contentBytes = SEED_FILES.reduce((sum, name) => sum + documents[name].length, 0);
  if (contentBytes <= FLOPPY_BYTES - FAT_BYTES) return FLOPPY_BYTES;
  // FAT and partly filled clusters need far less than the extra MiB.
  return (Math.ceil(contentBytes / MIB) + 1) * MIB;
}
