import { once } from 'node:events';
import { AppError } from '#shared/errors/app-error.ts';
import { startTar } from './run-tar.ts';
import { TarGate } from './tar-gate.ts';

export interface ExtractResult {
  readonly entries: number;
  /** The bytes of all files, as they are stored in the archive. */
  readonly bytes: number;
}

/**
 * Puts the entries of an archive into a directory as GNU tar does: owners, modes, times, links,
 * holes and extended attributes as in the archive, what is there is replaced, directories are
 * merged. Nothing lands outside. What comes before an entry that is refused is there.
 * @throws AppError PACKAGE_UNSAFE or PACKAGE_INVALID that names the entry; DISK_FULL
 */
export async function extractTar(
  archive: AsyncIterable<Buffer>,
  rootPath: string,
): Promise<ExtractResult> {
  const gate = new TarGate();
  const tar = startTar(rootPath);
  let hasEnded = false;
  const complaint = tar.ended.finally(() => (hasEnded = true));
  complaint.catch(() => undefined);
  try {
    for await (const chunk of archive) {
      for (const bytes of gate.push(chunk)) {
        // When it ends before it has read this, its end says why.
        if (!tar.input.write(bytes))
          await Promise.race([once(tar.input, 'drain').catch(() => complaint), complaint]);
      }
      if (hasEnded) break;
    }
    if (!hasEnded) gate.end();
    tar.input.end();
  } catch (error) {
    tar.kill();
    await complaint;
    throw error;
  }
  const what = await complaint;
  if (what !== null) throw explain(what);
  return gate.passed;
}

/** @param complaint of tar, without its name: `etc/motd: Cannot open: No space left on device` */
function explain(complaint: string): AppError {
  const shown = complaint.slice(0, 500);
  const isAttribute = complaint.includes('extended attribute') || complaint.includes('POSIX ACL');
  if (/No space left on device|Disk quota exceeded/.test(complaint) && !isAttribute)
    return new AppError('DISK_FULL', `no space left for entry ${shown}`, {
      hint: 'give the instance a larger disk, or a smaller package',
    });
  if (/Input\/output error|Read-only file system|Structure needs cleaning/.test(complaint))
    return new AppError('COMMAND_FAILED', `the file system of the instance is damaged: ${shown}`, {
      hint: 'check it with fsck, or install another image',
    });
  return new AppError('PACKAGE_INVALID', `personalization package: ${shown}`);
}
