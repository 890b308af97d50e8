import { constants } from 'node:fs';
import { appendFile, copyFile, open, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { systemCodeOf } from '#shared/errors/app-error.ts';
import { plainText } from '#shared/text/plain-text.ts';
import { SerialQueue } from '#shared/serial/serial-queue.ts';
import { MIB } from '#shared/units/bytes.ts';

/** Those of the largest whole number. */
const POSITION_DIGITS = 16;
/** One entry may print 4 MiB; a log of two is kept, and what was before it once. */
const MAX_AUDIT_BYTES = 8 * MIB;

/** What an instance's scripts did and printed: a file that only root reads, bounded. */
export interface AuditLog {
  /**
   * Appends in the order of calls. What comes from metad is there once: of a sequence that was
   * appended, or of one before it, nothing is appended again, by a later daemon neither.
   */
  append(uuid: string, text: string, sequence?: number): Promise<void>;
}

export function auditLogPath(logDir: string, uuid: string): string {
  return join(logDir, `audit-${uuid}.log`);
}

export function createAuditLog(logDir: string): AuditLog {
  const queue = new SerialQueue<string>();
  /** By instance: up to which one it was appended. */
  const known = new Map<string, number>();
  return {
    append: (uuid, text, sequence) =>
      queue.run(uuid, async () => {
        const path = auditLogPath(logDir, uuid);
        if (sequence !== undefined) {
          const last = known.get(uuid) ?? (await readPosition(`${path}.at`));
          known.set(uuid, Math.max(last, sequence));
          if (sequence <= last) return;
        }
        await bound(path);
        await appendFile(path, text, { mode: 0o600 });
        if (sequence !== undefined) await writePosition(`${path}.at`, sequence);
      }),
  };
}

export async function removeAuditLog(logDir: string, uuid: string): Promise<void> {
  const path = auditLogPath(logDir, uuid);
  for (const suffix of ['', '.1', '.at']) await rm(`${path}${suffix}`, { force: true });
}

/** Lines of output are indented: none of them can look like what the node says itself. */
export function formatOutput(text: string): string {
  const lines = text.endsWith('\n') ? text.slice(0, -1) : text;
  return `  ${plainText(lines).replaceAll('\n', '\n  ')}\n`;
}

export function formatLine(line: string, nowMs: number): string {
  return `${new Date(nowMs).toISOString().slice(0, 19)}Z ${line}\n`;
}

async function bound(path: string): Promise<void> {
  const size = await stat(path).then(
    (found) => found.size,
    (error: unknown) => {
      if (systemCodeOf(error) === 'ENOENT') return 0;
      throw error;
    },
  );
  if (size <= MAX_AUDIT_BYTES) return;
  await copyFile(path, `${path}.1`);
  // Emptied, not replaced: who follows it goes on.
  await writeFile(path, '', { mode: 0o600 });
}

/** In place, and always as long as before: whoever is killed at it leaves the former one whole. */
async function writePosition(path: string, sequence: number): Promise<void> {
  const { O_CREAT, O_WRONLY } = constants;
  await using file = await open(path, O_CREAT | O_WRONLY, 0o600);
  await file.write(String(sequence).padStart(POSITION_DIGITS), 0);
}

async function readPosition(path: string): Promise<number> {
  try {
    const position = Number((await readFile(path, 'utf8')).trim());
    return Number.isSafeInteger(position) ? position : 0;
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return 0;
    throw error;
  }
}
