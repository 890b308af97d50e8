import type { IncomingMessage, ServerResponse } from 'node:http';
import type { BootTree } from '../../content/downloads/boot-tree.ts';
import { AnswerSlots } from './answer-slots.ts';
import { refuse } from './refuse.ts';
import type { MetadFileSocket } from './hand-over-file.ts';
import { sendFile } from './send-file.ts';
import { sendMirrorAnswer } from './send-mirror.ts';

/**
 * Finds the boot tree of an instance. Undefined when this daemon does not know it at present. metad
 * has the view and tells the guest when to retry.
 */
export type FindBootTree = (uuid: string) => Promise<BootTree | undefined>;

/** Answers metad's requests for files of boot environments. */
export class BootSender {
  readonly #findTree: FindBootTree;
  readonly #metad: MetadFileSocket;
  readonly #slots = new AnswerSlots();

  constructor(findTree: FindBootTree, metad: MetadFileSocket) {
    this.#findTree = findTree;
    this.#metad = metad;
  }

  /** @param path in the tree, percent-encoded */
  async send(
    uuid: string,
    path: string,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const tree = await this.#findTree(uuid);
    if (!tree) return refuse(response, 503, 'the boot plan of this instance is not known yet');
    const signal = this.#slots.take(uuid, response);
    if (!signal) return;
    const answer = await tree.open({
      method: request.method === 'HEAD' ? 'HEAD' : 'GET',
      path,
      headers: request.headers,
      signal,
    });
    if (answer.kind !== 'slice') return sendMirrorAnswer(answer, request, response);
    await using handle = answer.handle;
    await sendFile({ ...answer, handle }, request, response, this.#metad);
  }
}
