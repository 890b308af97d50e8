import { setTimeout as delay } from 'node:timers/promises';
import { MAX_MESSAGE_BYTES } from '#shared/contract/channel-message.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { NodeClient } from '../../client/node-client.ts';
import type { Context } from '../../terminal/context.ts';
import { CommandFailure } from '../../failures/failure.ts';

/** A script on the host may start before the appliance opens its channel. */
const OPEN_LIMIT_MS = 300_000;
const OPEN_RETRY_MS = 500;
/** Longest wait of the daemon for one request. */
const QUESTION_S = 50;

/**
 * Waits for bytes from the other side, prints them and ends.
 * @param waitS longest wait in seconds after the channel opened; undefined: as long as it is open
 * @throws AppError CHANNEL_CLOSED when the channel is closed, or nothing arrived in time
 */
export async function runChannelRead(
  context: Context,
  name: string,
  options: { readonly wait?: number },
): Promise<void> {
  const client = await context.client();
  const first = await whenOpen(context, name, () => client.receive(name, 0));
  const bytes = first ?? (await waitForBytes(context, client, name, options.wait));
  await new Promise<void>((resolve) => context.terminal.stdout.write(bytes, () => resolve()));
}

async function waitForBytes(
  context: Context,
  client: NodeClient,
  name: string,
  waitS: number | undefined,
): Promise<Buffer> {
  const deadlineMs = context.clock.monotonicMs() + (waitS ?? Infinity) * 1000;
  for (;;) {
    const leftMs = deadlineMs - context.clock.monotonicMs();
    if (leftMs <= 0) {
      throw new AppError('CHANNEL_CLOSED', `no bytes from ${name} within ${waitS} s`);
    }
    const questionS = Math.min(QUESTION_S, Math.ceil(leftMs / 1000));
    const bytes = await asClosed(name, () => client.receive(name, questionS));
    if (bytes) return bytes;
  }
}

/**
 * Sends stdin to the other side, waiting while its queue is full.
 * @throws AppError CHANNEL_CLOSED
 */
export async function runChannelWrite(context: Context, name: string): Promise<void> {
  const client = await context.client();
  for await (const chunk of context.terminal.stdin) {
    const bytes = Buffer.from(chunk as Buffer); // no encoding is set on stdin
    for (let at = 0; at < bytes.length; at += MAX_MESSAGE_BYTES) {
      await sendPiece(context, client, name, bytes.subarray(at, at + MAX_MESSAGE_BYTES));
    }
  }
}

async function sendPiece(
  context: Context,
  client: NodeClient,
  name: string,
  piece: Buffer,
): Promise<void> {
  for (;;) {
    const outcome = await whenOpen(context, name, () => client.send(name, piece));
    if (outcome === true) return;
    await delay(outcome * 1000);
  }
}

async function whenOpen<T>(context: Context, name: string, act: () => Promise<T>): Promise<T> {
  const deadlineMs = context.clock.monotonicMs() + OPEN_LIMIT_MS;
  for (;;) {
    try {
      return await act();
    } catch (error) {
      if (!isClosed(error)) throw error;
      if (context.clock.monotonicMs() >= deadlineMs) throw closed(name, error);
    }
    await delay(OPEN_RETRY_MS);
  }
}

async function asClosed<T>(name: string, act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    throw isClosed(error) ? closed(name, error) : error;
  }
}

/** Tells whether an error means that the channel is not open yet, or no longer. */
function isClosed(error: unknown): boolean {
  const codes = new Set(['INSTANCE_STATE', 'METAD_UNAVAILABLE', 'CHANNEL_CLOSED']);
  return error instanceof CommandFailure && codes.has(error.code);
}

function closed(name: string, cause: unknown): AppError {
  return new AppError('CHANNEL_CLOSED', `the channel of ${name} is closed`, { cause });
}
