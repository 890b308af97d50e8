import { spawn } from 'node:child_process';
import { stat } from 'node:fs/promises';
import { constants } from 'node:os';
import { resolve } from 'node:path';
import { type Readable, Transform, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { nodeName } from '#shared/contract/primitives.ts';
import { AppError, systemCodeOf } from '#shared/errors/app-error.ts';
import { MIB } from '#shared/units/bytes.ts';
import { formatBytes } from '../../render/format.ts';
import type { Context } from '../../terminal/context.ts';
import { holdInterrupt, nameSome } from '../between-jobs.ts';
import { orNotInstalled, sshOption } from '../instance/ssh.ts';
import { nodeNotFound } from '../node/node.ts';

export interface NodeOptions {
  readonly node?: readonly string[];
}
export interface CommandOptions extends NodeOptions {
  readonly failureOnly?: boolean;
}

/** Output of a command that is kept in memory until its end is known. */
const MAX_KEPT_BYTES = MIB;
const MAX_KEPT_CHUNKS = 4096;
/** Never asks, and accepts only known host keys. The user's configuration of ssh applies. */
const SSH_OPTIONS = [
  ...sshOption('BatchMode', 'yes'),
  ...sshOption('StrictHostKeyChecking', 'yes'),
  ...sshOption('ConnectTimeout', '10'),
  // A node that stops during the command fails after three unanswered messages.
  ...sshOption('ServerAliveInterval', '15'),
  ...sshOption('ServerAliveCountMax', '3'),
  ...sshOption('User', 'root'),
  ...sshOption('ForwardAgent', 'no'),
  ...sshOption('ForwardX11', 'no'),
];

/** @throws AppError NODE_NOT_FOUND, HOST_PREREQUISITE, COMMAND_FAILED */
export async function runClusterCommand(
  context: Context,
  words: readonly string[],
  options: CommandOptions,
): Promise<void> {
  const command = words.join(' ');
  await onEach(context, options, true, ({ name, isOwn }) =>
    runPrefixed(context, {
      ...(isOwn
        ? { program: '/bin/sh', args: ['-c', command] }
        : { program: 'ssh', args: ['-T', ...SSH_OPTIONS, '--', name, command] }),
      node: name,
      failureOnly: options.failureOnly === true,
    }),
  );
}

/** @throws AppError FILE_UNREADABLE, and as `runClusterCommand` */
export async function runCopyFile(
  context: Context,
  file: string,
  options: NodeOptions,
): Promise<void> {
  // A path from the root contains a slash before any colon, so scp takes it for a local one.
  const path = resolve(file);
  const found = await stat(path).catch((error: unknown) => {
    throw new AppError('FILE_UNREADABLE', `cannot read ${path}: ${systemCodeOf(error)}`, {
      cause: error,
    });
  });
  if (!found.isFile()) throw new AppError('FILE_UNREADABLE', `${path} is not a regular file`);
  await onEach(context, options, false, async ({ name }) => {
    const status = await runPrefixed(context, {
      program: 'scp',
      // In SFTP mode no shell of the node expands the path.
      args: ['-s', '-q', '-p', ...SSH_OPTIONS, '--', path, `${name}:${path}`],
      node: name,
      failureOnly: false,
    });
    if (status === 0) context.note(`${name}: copied`);
    return status;
  });
}

interface Target {
  readonly name: string;
  readonly isOwn: boolean;
}

/**
 * Runs an action for the chosen nodes, this node last.
 * @param act returns an exit status
 * @throws AppError NODE_NOT_FOUND before the first action; COMMAND_FAILED after the last one
 */
async function onEach(
  context: Context,
  { node: wanted }: NodeOptions,
  withOwn: boolean,
  act: (target: Target) => Promise<number>,
): Promise<void> {
  const client = await context.client();
  const [own, nodes] = await Promise.all([client.ask('GET /v1/node'), client.ask('GET /v1/nodes')]);
  const names = nodes.map(({ name }) => name);
  for (const name of wanted ?? []) if (!names.includes(name)) throw nodeNotFound(name, nodes);
  const targets = nodes
    .filter(({ name }) => wanted?.includes(name) ?? true)
    .map(({ name, flags }) => ({ name, flags, isOwn: name === own.name }))
    .filter(({ isOwn }) => withOwn || !isOwn)
    .sort(
      (a, b) =>
        Number(a.isOwn) - Number(b.isOwn) || a.name.localeCompare(b.name, 'en', { numeric: true }),
    );
  if (targets.length === 0) context.note('there is no other node');
  const failed: string[] = [];
  using between = holdInterrupt(context);
  for (const [at, { flags, ...target }] of targets.entries()) {
    if (flags.offline) {
      context.note(`${target.name}: left out, because it is marked offline`);
      continue;
    }
    try {
      if ((await act(checkName(target))) !== 0) failed.push(target.name);
      between.throwIfInterrupted();
    } catch (error) {
      const rest = targets.slice(at + 1).map(({ name }) => name);
      if (rest.length > 0) context.note(`not reached: ${nameSome(rest)}`);
      throw error;
    }
  }
  if (failed.length === 0) return;
  throw new AppError(
    'COMMAND_FAILED',
    `failed on ${failed.length} of ${targets.length} node(s): ${failed.join(', ')}`,
    { details: { nodes: failed } },
  );
}

/** A name of the store that ssh could read as an option, user or port. */
function checkName(target: Target): Target {
  if (nodeName.safeParse(target.name).success) return target;
  throw new AppError('VALIDATION', `'${target.name}' is not a valid node name`);
}

interface Running {
  readonly program: string;
  readonly args: readonly string[];
  readonly node: string;
  /** Print the output only after a failure. */
  readonly failureOnly: boolean;
}

/**
 * Runs a program without stdin, and prints its output after the name of the node.
 * @returns its exit status, or as a shell does 128 and the number of the signal that ended it
 * @throws AppError INTERRUPTED at once, even if children of the program keep its output open
 */
async function runPrefixed(context: Context, running: Running): Promise<number> {
  const { program, args, node, failureOnly } = running;
  const prefix = `${node}: `;
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  const left = new AbortController();
  const release = context.interrupts.take(() => {
    child.kill('SIGTERM');
    left.abort(new AppError('INTERRUPTED', `interrupted: the command may continue on ${node}`));
  });
  const kept = keepLast();
  const show = (from: Readable, to: Writable): Promise<void> =>
    pipeline(from, prefixLines(prefix), failureOnly ? kept.writable(to) : to, {
      end: failureOnly,
      signal: left.signal,
    });
  try {
    const ended = new Promise<number>((done, reject) => {
      child.once('error', (error) => reject(orNotInstalled(error, program)));
      child.once('close', (code, signal) => done(code ?? statusOfSignal(signal)));
    });
    const { stdout, stderr } = context.terminal;
    const [status] = await Promise.all([
      ended,
      show(child.stdout, stdout),
      show(child.stderr, stderr),
    ]);
    if (status !== 0) {
      if (kept.lostBytes() > 0)
        context.note(`${prefix}left out ${formatBytes(kept.lostBytes())} of earlier output`);
      for (const [to, chunk] of kept.chunks) to.write(chunk);
      context.note(`${prefix}exit status ${status}`);
    }
    return status;
  } catch (error) {
    left.signal.throwIfAborted();
    throw error;
  } finally {
    release();
  }
}

function statusOfSignal(signal: NodeJS.Signals | null): number {
  return 128 + (signal === null ? 0 : constants.signals[signal]);
}

/** Keeps the last part of the output of one command, in order. */
function keepLast() {
  const chunks: (readonly [Writable, Buffer])[] = [];
  let bytes = 0;
  let lost = 0;
  return {
    chunks: chunks as readonly (readonly [Writable, Buffer])[],
    lostBytes: () => lost,
    writable: (to: Writable): Writable =>
      new Writable({
        write(chunk: Buffer, _encoding, done) {
          chunks.push([to, chunk]);
          bytes += chunk.length;
          while (bytes > MAX_KEPT_BYTES || chunks.length > MAX_KEPT_CHUNKS) {
            const length = chunks.shift()?.[1].length ?? 0;
            bytes -= length;
            lost += length;
          }
          done();
        },
      }),
  };
}

/** Puts a prefix before each line, and ends the last line. */
function prefixLines(prefix: string): Transform {
  let isLineStart = true;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      const parts: (Buffer | string)[] = [];
      for (let at = 0; at < chunk.length;) {
        const end = chunk.indexOf('\n', at) + 1 || chunk.length;
        parts.push(isLineStart ? prefix : '', chunk.subarray(at, end));
        isLineStart = chunk[end - 1] === 0x0a;
        at = end;
      }
      done(null, Buffer.concat(parts.map((part) => Buffer.from(part))));
    },
    flush(done) {
      done(null, isLineStart ? undefined : '\n');
    },
  });
}
