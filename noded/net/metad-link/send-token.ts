import type { ServerResponse } from 'node:http';
import { InstanceSlots } from '#shared/bounds/instance-slots.ts';
import { MAX_TOKEN_REQUESTS } from '#shared/contract/metad-control.ts';
import { refuse } from './refuse.ts';

export type TokenAnswer =
  | { readonly kind: 'issued'; readonly token: string }
  | {
      readonly kind: 'refused';
      readonly status: 400 | 403 | 404 | 503;
      /** Shown to the guest. */
      readonly reason: string;
    };

/** Issues an identity token to an instance. The guest has written the query. */
export type IssueToken = (uuid: string, query: URLSearchParams) => Promise<TokenAnswer>;

/** Answers metad's requests for identity tokens. */
export class TokenSender {
  readonly #issue: IssueToken;
  readonly #slots = new InstanceSlots(MAX_TOKEN_REQUESTS);

  constructor(issue: IssueToken) {
    this.#issue = issue;
  }

  async send(uuid: string, query: string, response: ServerResponse): Promise<void> {
    const giveBack = this.#slots.take(uuid);
    if (!giveBack) return refuse(response, 503, 'too many concurrent requests for tokens');
    try {
      const answer = await this.#issue(uuid, new URLSearchParams(query));
      if (answer.kind === 'refused') return refuse(response, answer.status, answer.reason);
      response.writeHead(200, {
        'content-type': 'text/plain',
        'content-length': answer.token.length,
      });
      response.end(answer.token);
    } finally {
      giveBack();
    }
  }
}
