import type { IncomingMessage, ServerResponse } from 'node:http';
import { parseRange } from '#shared/http/parse-range.ts';
import type { BootSlice, BootTree } from '../boot/boot-tree.ts';
import { AnswerSlots } from './answer-slots.ts';
import { refuse } from './refuse.ts';
import { sendBytes } from './send-bytes.ts';
import { sendMirrorAnswer } from './send-mirror.ts';

/**
 * Undefined: this daemon does not know yet, or no more, what the instance boots; metad, which has
 * its view, says when to ask again.
 */
export type FindBootTree = (uuid: string) => BootTree | undefined;

/** Answers metad's requests for files of boot environments. */
export class BootSender {
  readonly #findTree: FindBootTree;
  readonly #slots = new AnswerSlots();

  constructor(findTree: FindBootTree) {
    this.#findTree = findTree;
  }

  /** @param path in the tree, percent-encoded */
  async send(
    uuid: string,
    path: string,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const tree = this.#findTree(uuid);
    if (!tree) return refuse(response, 503, 'what this instance boots is not known yet');
    const signal = this.#slots.take(uuid, response);
    if (!signal) return;
    const answer = await tree.open({
      method: request.method === 'HEAD' ? 'HEAD' : 'GET',
      path,
      headers: request.headers,
      signal,
    });
    if (answer.kind === 'slice') return sendSlice(answer, request, response);
    return sendMirrorAnswer(answer, request, response);
  }
}

async function sendSlice(
  slice: BootSlice,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  await using handle = slice.handle;
  const { headers, method } = request;
  const { offset, sizeBytes, etag } = slice;
  response.setHeader('accept-ranges', 'bytes');
  response.setHeader('etag', etag);
  if (headers['if-none-match']?.split(',').some((tag) => tag.trim() === etag)) {
    response.writeHead(304);
    response.end();
    return;
  }
  const isSame = headers['if-range'] === undefined || headers['if-range'] === etag;
  const range = isSame ? parseRange(headers.range, sizeBytes) : undefined;
  if (range === 'unsatisfiable') {
    response.setHeader('content-range', `bytes */${sizeBytes}`);
    return refuse(response, 416, `the file has ${sizeBytes} bytes`);
  }
  const [first, last] = range ?? [0, sizeBytes - 1];
  response.writeHead(range ? 206 : 200, {
    'content-type': 'application/octet-stream',
    'content-length': last - first + 1,
    ...(range && { 'content-range': `bytes ${first}-${last}/${sizeBytes}` }),
  });
  if (method === 'HEAD' || last < first) {
    response.end();
    return;
  }
  await sendBytes(handle, { first: offset + first, last: offset + last }, response);
}
