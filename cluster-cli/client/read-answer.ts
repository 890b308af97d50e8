import type { IncomingMessage } from 'node:http';
import { AppError } from '#shared/errors/app-error.ts';
import { collect, TooLong } from '#shared/stream/collect.ts';
import { LineSplitter } from '#shared/text/lines.ts';
import { MIB } from '#shared/units/bytes.ts';
import type { Answers } from './answers.ts';

const MAX_ANSWER_BYTES = 64 * MIB;
/** All that is known of an instance; JSON writes a control character with six. */
export const MAX_LINE_CHARACTERS = 64 * MIB;

/** @throws AppError NODED_UNREACHABLE when it is broken off */
export async function readAll(response: IncomingMessage): Promise<Buffer> {
  try {
    return await collect(response, MAX_ANSWER_BYTES);
  } catch (error) {
    throw error instanceof TooLong ? notUnderstood('the request', error.message) : brokenOff(error);
  }
}

/** The lines of an answer, as they come. @throws AppError NODED_UNREACHABLE */
export async function* linesOf(
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
export async function loadAnswers(): Promise<Answers> {
  return (await import('./answers.ts')).answers;
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

export function notUnderstood(path: string, reason: string | undefined): AppError {
  return new AppError('INTERNAL', `unexpected answer of gnt-noded to ${path}: ${reason}`, {
    hint: 'The running gnt-noded has another version: systemctl restart gnt-noded',
  });
}
