import type { ServerResponse } from 'node:http';
import { InstanceSlots } from '#shared/bounds/instance-slots.ts';
import type { Cloud } from '#shared/contract/cloud-credentials.ts';
import { MAX_CREDENTIAL_REQUESTS, MAX_TOKEN_REQUESTS } from '#shared/contract/metad-control.ts';
import { refuse } from './refuse.ts';

export type TokenAnswer =
  | { readonly kind: 'issued'; readonly token: string }
  | {
      readonly kind: 'refused';
      readonly status: 400 | 403 | 404 | 503;
      /** Shown to the guest. */
      readonly reason: string;
    };

/**
 * Issues an identity token to an instance, or the credentials that a cloud gives for one.
 * @param query of a token; the guest has written it
 */
export type IssueToken = (
  uuid: string,
  query: URLSearchParams,
  cloud: Cloud | null,
) => Promise<TokenAnswer>;

/** Answers metad's requests for identity tokens and credentials. */
export class TokenSender {
  readonly #issue: IssueToken;
  readonly #tokens = new InstanceSlots(MAX_TOKEN_REQUESTS);
  readonly #credentials = new InstanceSlots(MAX_CREDENTIAL_REQUESTS);

  constructor(issue: IssueToken) {
    this.#issue = issue;
  }

  async send(
    uuid: string,
    query: string,
    cloud: Cloud | null,
    response: ServerResponse,
  ): Promise<void> {
    const giveBack = (cloud === null ? this.#tokens : this.#credentials).take(uuid);
    if (!giveBack) return refuse(response, 503, 'too many concurrent requests for tokens');
    try {
      const answer = await this.#issue(uuid, new URLSearchParams(query), cloud);
      if (answer.kind === 'refused') return refuse(response, answer.status, answer.reason);
      response.writeHead(200, {
        'content-type': 'text/plain',
        'content-length': Buffer.byteLength(answer.token),
      });
      response.end(answer.token);
    } finally {
      giveBack();
    }
  }
}
