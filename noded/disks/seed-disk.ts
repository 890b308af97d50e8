import { open, rm } from 'node:fs/promises';
import { SERVICE_URL } from '#shared/contract/service-address.ts';
import { run } from '#shared/process/run.ts';
import { planMortal } from '../host/mortal-command.ts';

/** A FAT12 floppy's worth: the documents are a few KiB. */
const SEED_BYTES = 1440 * 1024;
/** Label and size that cloud-init's NoCloud looks for, on a file system that every kernel reads. */
const LABEL = 'CIDATA';

/**
 * Documents of a CIDATA disk, by file name. They hold no secret and no user content, only where to
 * fetch it.
 */
export interface SeedDocuments {
  readonly metaData: string;
  readonly networkConfig: string;
}

const INCLUDE_USER_DATA = `#include\n${SERVICE_URL}/nocloud/user-data\n`;
const INCLUDE_VENDOR_DATA = `#include\n${SERVICE_URL}/nocloud/vendor-data\n`;

/** Writes a read-only seed disk with mtools; nothing is mounted. */
export async function writeSeedDisk(path: string, documents: SeedDocuments): Promise<void> {
  await rm(path, { force: true });
  {
    await using file = await open(path, 'w', 0o600);
    await file.truncate(SEED_BYTES);
  }
  // Serial number and dates fixed: the same documents make the same disk.
  const environment = { MTOOLS_SKIP_CHECK: '1', SOURCE_DATE_EPOCH: '0' };
  const mtool = (name: string, args: readonly string[], input = ''): Promise<unknown> => {
    const mortal = planMortal(name, ['-i', path, ...args]);
    return run(mortal.command, mortal.args, { input, env: environment });
  };
  await mtool('mformat', ['-f', '1440', '-v', LABEL, '-N', '67696400', '::']);
  const files = {
    'meta-data': documents.metaData,
    'network-config': documents.networkConfig,
    'user-data': INCLUDE_USER_DATA,
    'vendor-data': INCLUDE_VENDOR_DATA,
  };
  for (const [name, content] of Object.entries(files)) {
    await mtool('mcopy', ['-', `::${name}`], content);
  }
}
