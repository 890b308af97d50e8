import { constants } from 'node:fs';
import { appendFile, copyFile, open, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { systemCodeOf } from '#shared/errors/app-error.ts';
import { plainText } from '#shared/text/plain-text.ts';
import { SerialQueue } from '#shared/serial/serial-queue.ts';
import { MIB } from '#shared/units/bytes.ts';

/** Digits of Number.MAX_SAFE_INTEGER. */
const POSITION_DIGITS = 16;
/** One entry may have 4 MiB. One earlier log is kept. */
const MAX_AUDIT_BYTES = 8 * MIB;

/** Records actions and output of an instance's scripts in a bounded file that only root reads. */
export interface AuditLog {
  /**
   * Appends in the order of calls. Skips sequence numbers of metad that were already appended, also
   * by an earlier daemon.
   */
  append(uuid: string, text: string, sequence?: number): Promise<void>;
}

export function auditLogPath(logDir: string, uuid: string): string {
  return join(logDir, `audit-${uuid}.log`);
}

export function createAuditLog(logDir: string): AuditLog {
  const queue = new SerialQueue<string>();
  /** Last appended sequence, by instance. */
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

/** Indents output, so that no line looks like the node's own. */
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
  // Truncated instead of replaced, for readers that follow it.
  await writeFile(path, '', { mode: 0o600 });
}

/** Overwrites in place with constant length, so that a crash leaves a valid position. */
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
