import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { z } from 'zod';
import { BUILD_HEADER, buildId } from '#shared/build/build-id.ts';
import { parseJson } from '#shared/json/parse-json.ts';
import { CommandFailure, failureOfApi } from '../failures/failure.ts';
import type { Answers } from './answers.ts';
import { call, type CallOptions, type Endpoint, upgrade } from './connection.ts';
import { linesOf, loadAnswers, notUnderstood, readAll, withAnswers } from './read-answer.ts';

/**
 * Answers that are not streams. An install's prerequisites may take a while (OS verify scripts), so
 * this is generous.
 */
export const ANSWER_TIMEOUT_MS = 120_000;
/** How long a store that does not answer is waited for. */
const STORE_WAIT_MS = 30_000;
const ASK_AGAIN_MS = 1000;

/** Picks the schema of an answer. */
export type SchemaOf<T> = (of: Answers) => z.ZodType<T>;

export async function raw(endpoint: Endpoint, path: string): Promise<Socket> {
  const upgraded = await withAnswers(upgrade(endpoint, path));
  if (upgraded.kind === 'raw') return upgraded.socket;
  await orFailure(upgraded.answer);
  throw notUnderstood(path, `status ${upgraded.answer.statusCode} instead of raw bytes`);
}

export async function ask<T>(
  endpoint: Endpoint,
  options: CallOptions,
  schema: SchemaOf<T>,
): Promise<T> {
  const response = await succeed(endpoint, { idleTimeoutMs: ANSWER_TIMEOUT_MS, ...options });
  const read = await readerOf(response, options.path, schema);
  return read(await readAll(response));
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
