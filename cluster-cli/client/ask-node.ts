import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { z } from 'zod';
import { BUILD_HEADER, buildId } from '#shared/build/build-id.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { parseJson } from '#shared/json/parse-json.ts';
import { collect, TooLong } from '#shared/stream/collect.ts';
import { LineSplitter } from '#shared/text/lines.ts';
import { MIB } from '#shared/units/bytes.ts';
import { CommandFailure, failureOfApi } from '../failures/failure.ts';
import { call, type CallOptions, type Endpoint, upgrade } from './connection.ts';

type Answers = typeof import('./answers.ts');
/** Picks the schema of an answer. */
type SchemaOf<T> = (of: Answers) => z.ZodType<T>;

/**
 * Answers that are not streams. An install's prerequisites may take a while (OS verify scripts), so
 * this is generous.
 */
export const ANSWER_TIMEOUT_MS = 120_000;
/** How long a store that does not answer is waited for. */
const STORE_WAIT_MS = 30_000;
const ASK_AGAIN_MS = 1000;
const MAX_ANSWER_BYTES = 64 * MIB;
/** All that is known of an instance; JSON writes a control character with six. */
export const MAX_LINE_CHARACTERS = 64 * MIB;

export async function raw(endpoint: Endpoint, path: string): Promise<Socket> {
  const upgraded = await withAnswers(upgrade(endpoint, path));
  if (upgraded.kind === 'raw') return upgraded.socket;
  await orFailure(upgraded.answer);
  throw notUnderstood(path, `status ${upgraded.answer.statusCode} instead of raw bytes`);
}

/** Asks for lines, each of which is read while the next ones are on their way. */
export async function* askLines<T>(
  endpoint: Endpoint,
  path: string,
  schema: SchemaOf<T>,
): AsyncGenerator<readonly T[]> {
  const answer = await succeed(endpoint, { path, idleTimeoutMs: ANSWER_TIMEOUT_MS });
  const readLine = await readerOf(answer, path, schema);
  for await (const lines of linesOf(answer, path)) yield lines.map(readLine);
}

/**
 * Reads JSON of an answer. One that has passed the very schemas that would be made here is not
 * asked again.
 */
export async function readerOf<T>(
  response: IncomingMessage,
  path: string,
  schemaOf: SchemaOf<T>,
): Promise<(json: string | Buffer) => T> {
  // The daemon of our own build sends what its schemas gave it, which are ours.
  if (buildId !== null && response.headers[BUILD_HEADER] === buildId)
    return (json) => {
      const value = parseJson(json);
      if (value === undefined) throw notUnderstood(path, 'not JSON');
      return value as T;
    };
  const schema = schemaOf(await loadAnswers());
  return (json) => {
    const parsed = schema.safeParse(parseJson(json));
    if (parsed.success) return parsed.data;
    const [issue] = parsed.error.issues;
    throw notUnderstood(path, issue && `${issue.path.join('.')}: ${issue.message}`);
  };
}

export async function succeed(endpoint: Endpoint, options: CallOptions): Promise<IncomingMessage> {
  const asked = succeedInTime(endpoint, options);
  const isQuick = (options.idleTimeoutMs ?? Infinity) <= ANSWER_TIMEOUT_MS;
  return isQuick ? asked : withAnswers(asked);
}

/**
 * What a store that is away refuses has not been done and never is, so it is asked for again: a
 * failover of Redis takes seconds.
 */
async function succeedInTime(endpoint: Endpoint, options: CallOptions): Promise<IncomingMessage> {
  const giveUpAtMs = performance.now() + (endpoint.storeWaitMs ?? STORE_WAIT_MS);
  for (let isTold = false; ; isTold = true) {
    try {
      return await orFailure(await call(endpoint, options));
    } catch (error) {
      const isAway = error instanceof CommandFailure && error.code === 'STORE_UNAVAILABLE';
      if (!isAway || performance.now() > giveUpAtMs) throw error;
      if (!isTold) endpoint.onStoreAway?.(error.message);
      await delay(ASK_AGAIN_MS, undefined, options.signal && { signal: options.signal });
    }
  }
}

/** @throws CommandFailure with what the daemon said, when it did not say yes. */
export async function orFailure(response: IncomingMessage): Promise<IncomingMessage> {
  const status = response.statusCode ?? 500;
  if (status < 400) return response;
  const answers = await loadAnswers();
  const parsed = answers.refusal.safeParse(parseJson(await readAll(response)));
  if (parsed.success) throw failureOfApi(status, parsed.data);
  throw notUnderstood('error', `status ${status} without a message`);
}

/** @throws AppError NODED_UNREACHABLE when it is broken off */
export async function readAll(response: IncomingMessage): Promise<Buffer> {
  try {
    return await collect(response, MAX_ANSWER_BYTES);
  } catch (error) {
    throw error instanceof TooLong ? notUnderstood('the request', error.message) : brokenOff(error);
  }
}

/** The lines of an answer, as they come. @throws AppError NODED_UNREACHABLE */
async function* linesOf(
  response: IncomingMessage,
  path: string,
): AsyncGenerator<readonly string[], void> {
  const splitter = new LineSplitter({ maxLength: MAX_LINE_CHARACTERS, longer: 'refuse' });
  try {
    // setEncoding makes the chunks strings.
    for await (const text of response.setEncoding('utf8') as AsyncIterable<string>)
      yield splitter.push(text);
  } catch (error) {
    throw error instanceof RangeError ? notUnderstood(path, error.message) : brokenOff(error);
  }
}

/**
 * Loads the schemas of answers. Node resolves an import once for each importing file, so only this
 * function imports them: after an upgrade has replaced the files, a second importer would fail.
 */
export function loadAnswers(): Promise<Answers> {
  return import('./answers.ts');
}

/**
 * Waits for an answer and loads the schemas meanwhile. An upgrade may replace the files of a
 * command that waits, so the schemas of later answers are loaded before the first one.
 */
export async function withAnswers<T>(asked: Promise<T>): Promise<T> {
  const [answer] = await Promise.all([asked, loadAnswers()]);
  return answer;
}

function brokenOff(cause: unknown): AppError {
  return new AppError('NODED_UNREACHABLE', 'the node daemon ended its answer early', {
    hint: 'Try again; if that fails, read the log of gnt-noded',
    cause,
  });
}

export async function discard(response: IncomingMessage): Promise<void> {
  await readAll(response);
}

function notUnderstood(path: string, reason: string | undefined): AppError {
  return new AppError('INTERNAL', `unexpected answer of gnt-noded to ${path}: ${reason}`, {
    hint: 'The running gnt-noded has another version: systemctl restart gnt-noded',
  });
}
