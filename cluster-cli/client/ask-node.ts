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
 * Limit of answers that are not streams. It is long because prerequisites of an installation run OS
 * verify scripts.
 */
export const ANSWER_TIMEOUT_MS = 120_000;
/** Limit of retries while the store is unavailable. */
const STORE_WAIT_MS = 30_000;
const ASK_AGAIN_MS = 1000;
const MAX_ANSWER_BYTES = 64 * MIB;
/** Largest line: one instance. JSON escapes a control character with six characters. */
export const MAX_LINE_CHARACTERS = 64 * MIB;

export async function raw(endpoint: Endpoint, path: string): Promise<Socket> {
  const upgraded = await withAnswers(upgrade(endpoint, path));
  if (upgraded.kind === 'raw') return upgraded.socket;
  await orFailure(upgraded.answer);
  throw notUnderstood(path, `status ${upgraded.answer.statusCode} instead of raw bytes`);
}

/** Requests lines. Each is parsed while later ones arrive. */
export async function* askLines<T>(
  endpoint: Endpoint,
  path: string,
  schema: SchemaOf<T>,
): AsyncGenerator<readonly T[]> {
  const answer = await succeed(endpoint, { path, idleTimeoutMs: ANSWER_TIMEOUT_MS });
  const readLine = await readerOf(answer, path, schema);
  for await (const lines of linesOf(answer, path)) yield lines.map(readLine);
}

/** Returns a parser of an answer's JSON. It skips validation if the daemon has the same build. */
export async function readerOf<T>(
  response: IncomingMessage,
  path: string,
  schemaOf: SchemaOf<T>,
): Promise<(json: string | Buffer) => T> {
  // A daemon of the same build has validated the answer with the same schemas.
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
 * Repeats a request while the store is unavailable. A refused request has no effect, and a failover
 * of Redis takes seconds.
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

/** @throws CommandFailure with the daemon's error for a status of 400 or above */
export async function orFailure(response: IncomingMessage): Promise<IncomingMessage> {
  const status = response.statusCode ?? 500;
  if (status < 400) return response;
  const answers = await loadAnswers();
  const parsed = answers.refusal.safeParse(parseJson(await readAll(response)));
  if (parsed.success) throw failureOfApi(status, parsed.data);
  throw notUnderstood('error', `status ${status} without a message`);
}

/** @throws AppError NODED_UNREACHABLE if the answer ends early */
export async function readAll(response: IncomingMessage): Promise<Buffer> {
  try {
    return await collect(response, MAX_ANSWER_BYTES);
  } catch (error) {
    throw error instanceof TooLong ? notUnderstood('the request', error.message) : brokenOff(error);
  }
}

/**
 * Yields the lines of an answer as they arrive.
 * @throws AppError NODED_UNREACHABLE
 */
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
 * Waits for an answer and loads the schemas meanwhile. An upgrade may replace the files during the
 * wait, so the schemas of later answers are loaded before the first one.
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
