import type { IncomingMessage, ServerResponse } from 'node:http';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import {
  MAX_FILE_BYTES,
  type MirrorAnswer,
  type MirrorRequest,
} from '../../content/downloads/ask-mirror.ts';
import { AnswerSlots } from './answer-slots.ts';
import { refuse } from './refuse.ts';

/**
 * Asks a mirror. Undefined when the instance is not being installed, or when the administrator
 * allows no mirror of this name.
 */
export type OpenMirror = (
  uuid: string,
  name: string,
  request: MirrorRequest,
) => Promise<MirrorAnswer | undefined>;

/** Answers metad's requests for files of package mirrors. */
export class MirrorSender {
  readonly #openMirror: OpenMirror;
  readonly #slots = new AnswerSlots();

  constructor(openMirror: OpenMirror) {
    this.#openMirror = openMirror;
  }

  /** @param target `NAME` or `NAME/PATH`, percent-encoded */
  async send(
    uuid: string,
    target: string,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const signal = this.#slots.take(uuid, response);
    if (!signal) return;
    const slash = target.indexOf('/');
    const answer = await this.#openMirror(uuid, slash === -1 ? target : target.slice(0, slash), {
      method: request.method === 'HEAD' ? 'HEAD' : 'GET',
      path: slash === -1 ? '' : target.slice(slash + 1),
      headers: request.headers,
      signal,
    });
    if (!answer) return refuse(response, 404, 'no such mirror');
    return sendMirrorAnswer(answer, request, response);
  }
}

export async function sendMirrorAnswer(
  answer: MirrorAnswer,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  if (answer.kind === 'refusal') return refuse(response, answer.status, answer.reason);
  response.writeHead(answer.status, answer.headers);
  if (request.method === 'HEAD' || answer.status === 304) {
    answer.body.destroy();
    response.end();
    return;
  }
  await pipeline(answer.body, bounded(MAX_FILE_BYTES), response);
}

/** Cuts off an answer without content length at the limit. */
function bounded(maxBytes: number): Transform {
  let bytes = 0;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length;
      if (bytes > maxBytes) done(new Error(`more than ${maxBytes} bytes`));
      else done(null, chunk);
    },
  });
}
