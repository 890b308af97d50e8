import { once } from 'node:events';
import { AppError } from '#shared/errors/app-error.ts';
import { formatOwner, GuestDirectories } from './guest-directories.ts';
import type { JudgedEntry } from './judge-entry.ts';
import { LeftOut } from './left-out.ts';
import { startTar } from './run-tar.ts';
import { TarGate } from './tar-gate.ts';
import { showName } from './tar-header.ts';

const MAX_NAMED = 20;

export interface ExtractResult {
  readonly entries: number;
  /** Bytes of all files, as stored in the archive. */
  readonly bytes: number;
}

/**
 * Unpacks an archive into a directory with GNU tar: owners, modes, times, links, holes and extended
 * attributes as in the archive. Existing files are replaced. Existing directories keep their owner,
 * mode and attributes, and `log` lists those with different ones in the archive. Attributes of
 * other systems are skipped and logged. Entries never lead outside. Entries before a refused one
 * stay.
 * @throws AppError PACKAGE_UNSAFE or PACKAGE_INVALID that names the entry; DISK_FULL
 */
export async function extractTar(
  archive: AsyncIterable<Buffer>,
  rootPath: string,
  log: (line: string) => void = () => undefined,
): Promise<ExtractResult> {
  const kept = new KeptDirectories(rootPath, log);
  const leftOut = new LeftOut();
  const gate = new TarGate((entry) => {
    if (kept.take(entry)) return true;
    leftOut.add(entry.leftOut);
    return false;
  });
  const tar = startTar(rootPath);
  let hasEnded = false;
  const complaint = tar.ended.finally(() => (hasEnded = true));
  complaint.catch(() => undefined);
  try {
    for await (const chunk of archive) {
      for (const bytes of gate.push(chunk)) {
        // When tar ends before reading this, its status has the reason.
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
  kept.summarize();
  const omitted = leftOut.describe();
  if (omitted !== null) log(omitted);
  return gate.passed;
}

class KeptDirectories {
  readonly #directories: GuestDirectories;
  readonly #log: (line: string) => void;
  #named = 0;

  constructor(rootPath: string, log: (line: string) => void) {
    this.#directories = new GuestDirectories(rootPath);
    this.#log = log;
  }

  take(entry: JudgedEntry): boolean {
    const stats = this.#directories.take(entry);
    if (stats === null) return false;
    const [own, other] = [formatOwner(stats), formatOwner(entry)];
    if (own === other) return true;
    this.#named += 1;
    if (this.#named > MAX_NAMED) return true;
    const name = showName(Buffer.from(`/${entry.components.join('/')}`, 'latin1'));
    this.#log(`directory ${name} keeps owner and mode ${own}; the package has ${other}`);
    return true;
  }

  summarize(): void {
    const more = this.#named - MAX_NAMED;
    if (more > 0) this.#log(`${more} more directories keep their owner and mode`);
  }
}

/**
 * @param complaint tar's message without its name: `etc/motd: Cannot open: No space left on device`
 */
function explain(complaint: string): AppError {
  const shown = complaint.slice(0, 500);
  const isAttribute = complaint.includes('extended attribute') || complaint.includes('POSIX ACL');
  if (/No space left on device|Disk quota exceeded/.test(complaint) && !isAttribute)
    return new AppError('DISK_FULL', `no space left for entry ${shown}`, {
      hint: 'Give the instance a larger disk, or use a smaller package.',
    });
  if (/Input\/output error|Read-only file system|Structure needs cleaning/.test(complaint))
    return new AppError('COMMAND_FAILED', `the file system of the instance is damaged: ${shown}`, {
      hint: 'Check it with fsck, or install another image.',
    });
  return new AppError('PACKAGE_INVALID', `personalization package: ${shown}`);
}
