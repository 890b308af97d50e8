import { mkdir, readFile, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { AppError, systemCodeOf } from '#shared/errors/app-error.ts';
import { readBounded } from '#shared/files/read-bounded.ts';
import { parseJson } from '#shared/json/parse-json.ts';
import { MAX_UNIX_PATH_BYTES } from '#shared/sys/unix-sockets.ts';
import { KIB, MIB } from '#shared/units/bytes.ts';
import { readFileTail } from '../host/bounded-log.ts';
import { parseProcessStat } from '../host/process-identity.ts';
import type { ProcessIdentity } from '../host/process-identity.ts';

/** Facts about a running guest for a later noded. */
const machineRecord = z.strictObject({
  version: z.literal(1),
  uuid: z.uuid(),
  name: z.string(),
  accelerator: z.enum(['kvm', 'tcg']),
  tap: z.string().nullable(),
  /** Missing in records of earlier releases, whose QEMU processes have no firewall. */
  userNic: z.boolean().default(false),
  /** NICs with mode=user reach only public addresses. Absent otherwise. */
  isPublicOnly: z.literal(true).optional(),
  /** A parent process pauses QEMU when this node may not write. Absent otherwise. */
  isFenced: z.literal(true).optional(),
  startedAtMs: z.number(),
  bootId: z.string(),
  meta: z.record(z.string(), z.string()),
});
export type MachineRecord = z.infer<typeof machineRecord>;

/** More than the documents and parameters of an instance can have. */
const MAX_NOTE_BYTES = 64 * MIB;
const STDERR_TAIL_BYTES = 4 * KIB;

const UUID_PATTERN = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/**
 * Manages `<vmDir>/<uuid>/`. It belongs to root: QEMU receives its sockets and logs as descriptors
 * and cannot replace them.
 */
export class RunDirectory {
  readonly path: string;

  constructor(vmDir: string, uuid: string) {
    if (!UUID_PATTERN.test(uuid)) throw new Error(`not a lower-case UUID: ${uuid}`);
    this.path = join(vmDir, uuid);
    const length = Buffer.byteLength(this.consoleSocket);
    if (length > MAX_UNIX_PATH_BYTES) {
      throw new AppError(
        'HOST_PREREQUISITE',
        `the path ${vmDir} is too long: its sockets would have ${length} bytes, but the system allows ${MAX_UNIX_PATH_BYTES}`,
        { hint: 'Use a shorter GNT_ROOT.' },
      );
    }
  }

  get qmpSocket(): string {
    return join(this.path, 'qmp');
  }
  get consoleSocket(): string {
    return join(this.path, 'console');
  }
  get stderrLog(): string {
    return join(this.path, 'qemu.log');
  }
  get identityFile(): string {
    return join(this.path, 'process');
  }

  readStderr(): string {
    return readFileTail(this.stderrLog, STDERR_TAIL_BYTES);
  }

  async create(record: MachineRecord): Promise<void> {
    await mkdir(this.path, { recursive: true, mode: 0o700 });
    await this.#write('machine.json', JSON.stringify(record));
  }

  /** Returns undefined when the record is missing or invalid. */
  async readRecord(): Promise<MachineRecord | undefined> {
    const text = await readText(join(this.path, 'machine.json'));
    return text === undefined ? undefined : machineRecord.safeParse(parseJson(text)).data;
  }

  /** Writes a separate file, so that every release can read `machine.json`. */
  async writeNote(note: string): Promise<void> {
    await this.#write('note', note);
  }

  async readNote(): Promise<string | undefined> {
    try {
      return (await readBounded(join(this.path, 'note'), MAX_NOTE_BYTES)).toString('utf8');
    } catch (error) {
      if (systemCodeOf(error) === 'ENOENT') return undefined;
      throw error;
    }
  }

  /** Returns the launched process, running or not. */
  async readIdentity(): Promise<ProcessIdentity | undefined> {
    return parseProcessStat((await readText(this.identityFile)) ?? '');
  }

  async remove(): Promise<void> {
    await rm(this.path, { recursive: true, force: true });
  }

  async #write(name: string, text: string): Promise<void> {
    const temporary = join(this.path, `${name}.new`);
    await writeFile(temporary, text, { mode: 0o600 });
    await rename(temporary, join(this.path, name));
  }
}

export async function listRunDirectories(vmDir: string): Promise<readonly string[]> {
  try {
    return (await readdir(vmDir)).filter((name) => UUID_PATTERN.test(name));
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return [];
    throw error;
  }
}

async function readText(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}
