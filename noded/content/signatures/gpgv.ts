import type { ChildProcessByStdio } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { accessSync, constants } from 'node:fs';
import { mkdir, open, rm, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import type { ImageKey } from '#shared/contract/image-keys.ts';
import { AppError, systemCodeOf } from '#shared/errors/app-error.ts';
import { planSandbox } from '#shared/sandbox/plan-sandbox.ts';
import { type LaunchedProgram, launchProgram } from '#shared/process/launch.ts';
import { collect } from '#shared/stream/collect.ts';
import { KIB, MIB } from '#shared/units/bytes.ts';
import type { MachineUsers } from '../../host/machine-users.ts';
import { readArmor } from './armor.ts';
import type { ContentCheck } from './content-check.ts';
import { SignatureProblem } from './signature-problem.ts';

export type OpenpgpKey = Extract<ImageKey, { kind: 'openpgp' }>;

export interface GpgvOptions {
  readonly users: MachineUsers;
  /** A folder of root. Files in it have no name once they are open. */
  readonly dir: string;
}

const GPGV = '/usr/bin/gpgv';
const MAX_OUTPUT_BYTES = MIB;
/** gpgv needs far less for keys, a signature and hashes. */
const MEMORY_BYTES = 256 * MIB;
const KEYRING = 3;
const SIGNATURE = 4;
/**
 * Field of VALIDSIG in GnuPG's DETAILS: the signature class of RFC 9580, 5.2.1. 00 is a binary
 * signature.
 */
const CLASS_FIELD = 8;
const BINARY_CLASS = '00';
/** Field of VALIDSIG: the primary key's fingerprint. The first field is that of the subkey. */
const PRIMARY_FIELD = 9;
const FINGERPRINT = /^[0-9A-F]{40}(?:[0-9A-F]{24})?$/;

/** Reads the packets of a detached signature, with or without armour. @throws SignatureProblem */
export function parseOpenpgpSignature(bytes: Buffer): Buffer {
  const packets = readArmor(bytes.toString('latin1'), 'SIGNATURE') ?? bytes;
  if (!areSignaturePackets(packets)) throw new SignatureProblem('not a detached OpenPGP signature');
  return packets;
}

/**
 * Starts gpgv, which parses untrusted files, in a sandbox: a user of its own as instances have one,
 * no network, and no files but inherited descriptors.
 * @param accept called with the fingerprint of the primary key of a valid signature
 * @throws AppError HOST_PREREQUISITE when gpgv is not installed
 */
export async function startGpgv(
  keys: readonly OpenpgpKey[],
  signature: Buffer,
  { users, dir }: GpgvOptions,
  accept: (fingerprint: string) => void = () => undefined,
): Promise<ContentCheck> {
  requireGpgv();
  const keyring = Buffer.concat(keys.map((key) => Buffer.from(key.keyring, 'base64')));
  await mkdir(dir, { recursive: true, mode: 0o700 });
  await using files = new AsyncDisposableStack();
  const given: FileHandle[] = [];
  for (const content of [keyring, signature]) {
    const file = await openUnnamed(dir, content);
    files.defer(() => file.close());
    given.push(file);
  }
  const args = [
    '--homedir',
    '/nonexistent',
    '--keyring',
    `/dev/fd/${KEYRING}`,
    '--weak-digest',
    'SHA1',
  ];
  const command = [
    ...['prlimit', `--as=${MEMORY_BYTES}`, '--fsize=0', '--'],
    ...[GPGV, ...args, '--status-fd', '1', `/dev/fd/${SIGNATURE}`, '-'],
  ];
  const sandboxed = planSandbox({
    command,
    firstUid: users.first,
    group: null,
    hasHostNetwork: false,
  });
  const stdio = ['pipe', 'pipe', 'ignore', ...given.map(({ fd }) => fd)] as const;
  return new GpgvCheck(launchProgram(sandboxed, { stdio: [...stdio] }), accept);
}

class GpgvCheck implements ContentCheck {
  readonly #program: LaunchedProgram;
  readonly #accept: (fingerprint: string) => void;
  readonly #stdin: Writable;
  readonly #status: Promise<Buffer>;

  constructor(program: LaunchedProgram, accept: (fingerprint: string) => void) {
    this.#program = program;
    this.#accept = accept;
    // stdin and stdout are pipes.
    const { stdin, stdout } = program.child as ChildProcessByStdio<Writable, Readable, null>;
    this.#stdin = stdin;
    // gpgv may end before it has read everything. Its status decides.
    stdin.on('error', () => undefined);
    this.#status = collect(stdout, MAX_OUTPUT_BYTES);
    // Awaited in `finish`; until then its rejection must not end the program.
    this.#status.catch(() => undefined);
  }

  async write(chunk: Buffer): Promise<void> {
    const stdin = this.#stdin;
    if (stdin.destroyed || stdin.writableEnded || stdin.write(chunk)) return;
    await Promise.race([once(stdin, 'drain').catch(() => undefined), this.#program.exit]);
  }

  async finish(): Promise<void> {
    this.#stdin.end();
    const [status] = await this.#program.exit;
    this.#accept(judge((await this.#status).toString('latin1'), status === 0));
  }

  close(): void {
    this.#program.kill();
  }
}

/**
 * Judges by gpgv's status lines and its exit status. The exit status accepts an expired key, and
 * refuses several signatures of which one is by an unknown key. An unknown signature beside a valid
 * one is accepted.
 * @returns the fingerprint of the primary key of the first valid signature
 * @throws SignatureProblem
 */
function judge(text: string, isSuccess: boolean): string {
  const words = text.split('\n').flatMap((line) => /^\[GNUPG:\] ([A-Z_]+)/.exec(line)?.[1] ?? []);
  if (words.includes('BADSIG')) throw new SignatureProblem('it signs other content');
  if (words.includes('NO_PUBKEY') && !words.includes('VALIDSIG')) {
    const id = /^\[GNUPG:\] NO_PUBKEY ([0-9A-F]+)/m.exec(text)?.[1] ?? 'unknown';
    throw new SignatureProblem(`it was made by the key ${id}, which is not configured`);
  }
  const bad = words.find((word) => ['EXPSIG', 'EXPKEYSIG', 'REVKEYSIG'].includes(word));
  if (bad === 'REVKEYSIG') throw new SignatureProblem('its key was revoked');
  if (bad !== undefined) throw new SignatureProblem('the signature or its key has expired');
  const isFine = isSuccess || words.includes('NO_PUBKEY');
  if (!isFine || !words.includes('GOODSIG'))
    throw new SignatureProblem(`gpgv reports: ${words.join(', ').slice(0, 200) || 'nothing'}`);
  const valid = [...text.matchAll(/^\[GNUPG:\] VALIDSIG (.*)$/gm)].map(([, said = '']) =>
    said.split(' '),
  );
  if (valid.length === 0 || !valid.every((fields) => fields[CLASS_FIELD] === BINARY_CLASS))
    throw new SignatureProblem(
      'it is a text-mode signature, which ignores line ends: sign without --textmode',
    );
  return readFingerprint(valid[0]);
}

function readFingerprint(fields: readonly string[] = []): string {
  const fingerprint = fields[PRIMARY_FIELD];
  if (fingerprint !== undefined && FINGERPRINT.test(fingerprint)) return fingerprint;
  throw new SignatureProblem('gpgv reports no fingerprint of its key');
}

/** Opens a file without a name, which only holders of the descriptor can read. */
async function openUnnamed(dir: string, content: Buffer): Promise<FileHandle> {
  const path = join(dir, randomUUID());
  try {
    const written = await open(path, 'wx', 0o644);
    try {
      await written.chmod(0o644);
      await written.writeFile(content);
    } finally {
      await written.close();
    }
    return await open(path, 'r');
  } finally {
    await rm(path, { force: true });
  }
}

function requireGpgv(): void {
  try {
    accessSync(GPGV, constants.X_OK);
  } catch (error) {
    if (systemCodeOf(error) === undefined) throw error;
    throw new AppError('HOST_PREREQUISITE', 'gpgv is not installed', {
      hint: 'Install gpgv (apt-get install gpgv), or sign with minisign, which needs no program.',
      cause: error,
    });
  }
}

/** Size limit of a signature file, with room for comments and several signatures. */
export const MAX_SIGNATURE_BYTES = 64 * KIB;

/** Packet type of signatures (RFC 9580, 5). */
const SIGNATURE_TYPE = 2;

interface Packet {
  readonly type: number;
  readonly end: number;
}

/**
 * Returns whether bytes are signature packets and nothing else. With another packet among them,
 * such as a signed message, gpgv may judge that packet instead of the content.
 */
export function areSignaturePackets(bytes: Buffer): boolean {
  let offset = 0;
  while (offset < bytes.length) {
    const packet = readPacket(bytes, offset);
    if (packet?.type !== SIGNATURE_TYPE || packet.end > bytes.length) return false;
    offset = packet.end;
  }
  return bytes.length > 0;
}

/**
 * Reads a packet header of either format (RFC 9580, 4.2). Returns null for a packet without a
 * definite length.
 */
function readPacket(bytes: Buffer, offset: number): Packet | null {
  const first = bytes[offset] ?? 0;
  if ((first & 0x80) === 0) return null;
  if ((first & 0x40) !== 0) return readNewFormat(bytes, offset + 1, first & 0x3f);
  const width = [1, 2, 4][first & 0x03];
  if (width === undefined || offset + 1 + width > bytes.length) return null;
  const body = offset + 1 + width;
  return { type: (first >> 2) & 0x0f, end: body + bytes.readUIntBE(offset + 1, width) };
}

function readNewFormat(bytes: Buffer, offset: number, type: number): Packet | null {
  const [first = 0xe0, second = 0] = bytes.subarray(offset, offset + 2);
  if (first < 192) return { type, end: offset + 1 + first };
  if (first < 224) return { type, end: offset + 2 + ((first - 192) << 8) + second + 192 };
  if (first < 255 || offset + 5 > bytes.length) return null;
  return { type, end: offset + 5 + bytes.readUInt32BE(offset + 1) };
}
