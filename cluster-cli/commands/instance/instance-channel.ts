import type { Socket } from 'node:net';
import { pipeline } from 'node:stream/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { MAX_MESSAGE_BYTES } from '#shared/contract/channel-message.ts';
import { MAX_PORT } from '#shared/contract/number-limits.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { Context } from '../../terminal/context.ts';
import { CommandFailure } from '../../failures/failure.ts';
import { sanitizeText } from '../../render/sanitize.ts';

const ESCAPE_BYTE = 0x1d; // Ctrl-]
const MIN_PORT = 1;

/** Connects the terminal to the serial console until Ctrl-]. */
export async function runConsole(context: Context, name: string): Promise<void> {
  const client = await context.client();
  const socket = await client.connect('GET /v1/instances/{name}/console', { name });
  const { stdin, stdout } = context.terminal;
  const isInteractive = stdin.isTTY === true;
  if (isInteractive) {
    stdin.setRawMode(true);
    context.note(`connected to the console of ${name}; Ctrl-] disconnects\r`);
  }
  const ended = new Promise<void>((resolve, reject) => {
    socket.on('error', reject);
    socket.on('close', () => resolve());
    socket.pipe(stdout, { end: false });
    stdin.on('data', (chunk: Buffer) => {
      const escapeAt = isInteractive ? chunk.indexOf(ESCAPE_BYTE) : -1;
      const bytes = escapeAt === -1 ? chunk : chunk.subarray(0, escapeAt);
      if (bytes.length > 0) socket.write(bytes);
      if (escapeAt !== -1) socket.destroy();
    });
    socket.on('end', () => socket.end());
  });
  const release = context.interrupts.take(() => socket.destroy());
  try {
    await ended;
  } finally {
    release();
    if (isInteractive) stdin.setRawMode(false);
    stdin.pause();
    if (isInteractive) context.note(`\ndisconnected from the console of ${name}`);
  }
}

/** Time for bytes on their way to the guest, after the guest ended its side. */
const LINGER_MS = 1000;

/** Connects stdin and stdout to a port of the guest. Each direction ends separately. */
export async function runConnect(context: Context, name: string, portText: string): Promise<void> {
  const port = Number(portText);
  if (!/^\d{1,5}$/.test(portText) || port < MIN_PORT || port > MAX_PORT) {
    throw new AppError('USAGE', `'${portText}' is not a TCP port`, {
      hint: 'Write a number from 1 to 65535, such as 22',
    });
  }
  const client = await context.client();
  const socket = await client.connect('GET /v1/instances/{name}/connect/{port}', { name, port });
  await relay(context, socket);
}

async function relay(context: Context, socket: Socket): Promise<void> {
  const { stdin, stdout } = context.terminal;
  const sending = pipeline(stdin, socket);
  // The receiving side reports a failure; otherwise an interactive stdin ended.
  const sent = sending.catch(() => undefined);
  await new Promise<void>((resolve, reject) => {
    socket.on('end', resolve);
    socket.on('close', resolve);
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ECONNRESET' || error.code === 'EPIPE') resolve();
      else reject(error);
    });
    socket.pipe(stdout, { end: false });
  });
  await Promise.race([sent, delay(LINGER_MS)]);
  socket.destroy();
  stdin.destroy();
}

/** Sends a file or stdin to the guest's `read`, in pieces of 64 KiB. */
export async function runSend(
  context: Context,
  name: string,
  file: string | undefined,
  options: { readonly wait: boolean },
): Promise<void> {
  const client = await context.client();
  let isTold = false;
  for await (const piece of readPieces(context, file)) {
    for (;;) {
      const outcome = await client.send(name, piece);
      if (outcome === true) break;
      if (!options.wait) {
        throw new AppError('CHANNEL_FULL', `the queue to ${name} is full`, {
          hint: `Omit --no-wait to wait until the guest reads`,
        });
      }
      if (!isTold) context.note(`the queue to ${name} is full; waiting until the guest reads`);
      isTold = true;
      await delay(outcome * 1000);
    }
  }
}

async function* readPieces(context: Context, file: string | undefined): AsyncGenerator<Buffer> {
  const { createReadStream } = await import('node:fs');
  const isStdin = file === undefined || file === '-';
  const stream = isStdin
    ? context.terminal.stdin
    : createReadStream(file, { highWaterMark: MAX_MESSAGE_BYTES });
  try {
    for await (const chunk of stream) {
      const bytes = Buffer.from(chunk as Buffer); // neither stream has an encoding
      for (let at = 0; at < bytes.length; at += MAX_MESSAGE_BYTES) {
        yield bytes.subarray(at, at + MAX_MESSAGE_BYTES);
      }
    }
  } catch (error) {
    if (!(error instanceof Error) || !('syscall' in error)) throw error;
    throw new AppError('FILE_UNREADABLE', `${file ?? 'stdin'} cannot be read: ${error.message}`, {
      hint: 'Check the name and the permissions of the file',
      cause: error,
    });
  }
}

/** Longest wait of the daemon for one request. */
const RECEIVE_WAIT_S = 50;

/** Prints the bytes from the guest and removes them from the queue. */
export async function runReceive(
  context: Context,
  name: string,
  options: { readonly follow?: boolean },
): Promise<void> {
  const client = await context.client();
  const left = new AbortController();
  const release = context.interrupts.take(() => left.abort());
  try {
    for (;;) {
      const bytes = await client.receive(name, options.follow ? RECEIVE_WAIT_S : 0, left.signal);
      if (bytes) await write(context, bytes);
      if (!options.follow) return;
    }
  } catch (error) {
    if (!left.signal.aborted) throw error;
    throw new CommandFailure({
      code: 'INTERRUPTED',
      message: 'stopped receiving',
      hint: null,
      exitStatus: 130,
    });
  } finally {
    release();
  }
}

/**
 * Writes bytes of a guest unchanged to a file or a program, and without control sequences to a
 * terminal.
 */
async function write(context: Context, bytes: Buffer): Promise<void> {
  const { output } = context.terminal;
  await writeText(context, output.isTerminal ? sanitizeText(bytes.toString('utf8')) : bytes);
}

async function writeText({ terminal }: Context, text: string | Buffer): Promise<void> {
  await new Promise<void>((resolve) => terminal.stdout.write(text, () => resolve()));
}

/** Prints the guest's answer at a metadata path, with secrets redacted. */
export async function runMetadata(
  context: Context,
  name: string,
  path: string | undefined,
  options: { readonly json?: boolean },
): Promise<void> {
  const client = await context.client();
  const asked = (path ?? '').replace(/^\/+/, '');
  const { contentType, bytes } = await client.metadata(name, asked);
  if (options.json) {
    const text = bytes.toString('utf8');
    const isText = Buffer.from(text, 'utf8').equals(bytes);
    const content = isText
      ? { encoding: 'utf8', content: text }
      : { encoding: 'base64', content: bytes.toString('base64') };
    context.print(JSON.stringify({ path: `/${asked}`, contentType, ...content }, null, 2));
    return;
  }
  await write(context, bytes);
  const isTextWithoutEnd = context.terminal.output.isTerminal && bytes.at(-1) !== 0x0a;
  if (isTextWithoutEnd) context.print('');
}

export async function runLog(context: Context, name: string, options: LogOptions): Promise<void> {
  await showLog(context, name, 'log', options);
}

export async function runAudit(context: Context, name: string, options: LogOptions): Promise<void> {
  await showLog(context, name, 'audit', options);
}

interface LogOptions {
  readonly follow?: boolean;
  readonly json?: boolean;
}

async function showLog(
  context: Context,
  name: string,
  which: 'log' | 'audit',
  options: LogOptions,
): Promise<void> {
  if (options.follow && options.json) {
    throw new AppError('USAGE', '--follow and --json exclude each other', {
      hint: `gnt-job watch --json ID prints the events of a job`,
    });
  }
  const client = await context.client();
  const left = new AbortController();
  const release = context.interrupts.take(() => left.abort());
  try {
    const response = await client.open(`GET /v1/instances/{name}/${which}`, {
      name,
      query: { follow: options.follow ? '1' : undefined },
      signal: left.signal,
    });
    const chunks: Buffer[] = [];
    // A character may be split between chunks.
    const decoder = new TextDecoder();
    for await (const chunk of response) {
      const bytes = chunk as Buffer; // no encoding is set on the response
      if (options.json) chunks.push(bytes);
      // Sanitize the log for files too: a terminal may show the file later, and output of scripts
      // must not control it.
      else await writeText(context, sanitizeText(decoder.decode(bytes, { stream: true })));
    }
    if (options.json) {
      const lines = Buffer.concat(chunks).toString('utf8').split('\n');
      if (lines.at(-1) === '') lines.pop();
      context.print(JSON.stringify({ instance: name, lines }, null, 2));
    }
  } catch (error) {
    if (!left.signal.aborted) throw error;
    throw new CommandFailure({
      code: 'INTERRUPTED',
      message: 'stopped following',
      hint: null,
      exitStatus: 130,
    });
  } finally {
    release();
  }
}
