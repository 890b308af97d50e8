import type { ServerResponse } from 'node:http';
import { InstanceSlots } from '#shared/bounds/instance-slots.ts';
import { MAX_MIRROR_STREAMS } from '#shared/contract/metad-control.ts';
import { refuse } from './refuse.ts';

/** Limits the concurrent answers to metad per instance. An answer counts until it is closed. */
export class AnswerSlots {
  readonly #slots = new InstanceSlots(MAX_MIRROR_STREAMS);

  /**
   * @returns a signal that aborts when the reader disconnects; undefined if the request was refused
   */
  take(uuid: string, response: ServerResponse): AbortSignal | undefined {
    const giveBack = this.#slots.take(uuid);
    if (!giveBack) {
      refuse(response, 503, 'too many concurrent requests');
      return undefined;
    }
    const controller = new AbortController();
    response.on('close', () => {
      giveBack();
      controller.abort(new Error('the reader disconnected'));
    });
    return controller.signal;
  }
}
