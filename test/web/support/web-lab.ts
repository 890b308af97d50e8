import { once } from 'node:events';
import type { TestContext } from 'node:test';
import { webLink } from '#shared/contract/api.ts';
import { readLines } from '#shared/text/lines.ts';
import { createNodeClient } from '../../../cluster-cli/client/node-client.ts';
import type { Lab } from '../../../scripts/demo/lab.ts';

/** Opens the page of a node on a loopback port, as `gnt-cluster web` does. */
export async function openWeb(t: TestContext, { paths }: Lab, port = 0) {
  const client = createNodeClient({ socketPath: paths.nodedSocket, startCommand: 'gnt-noded' });
  const left = new AbortController();
  t.after(() => left.abort());
  const answer = await client.open('POST /v1/web', { body: { port }, signal: left.signal });
  const lines = readLines(answer, 1000);
  /** Returns an address that begins a session, once. */
  const nextLink = async (): Promise<string> =>
    webLink.parse(JSON.parse((await lines.next()).value ?? '')).url;
  const close = async (): Promise<void> => {
    const closed = once(answer, 'close');
    left.abort();
    answer.destroy();
    await closed;
  };
  return { nextLink, close };
}
