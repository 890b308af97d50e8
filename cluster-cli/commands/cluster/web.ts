import { setTimeout as delay } from 'node:timers/promises';
import { webLink } from '#shared/contract/api.ts';
import { isAppError } from '#shared/errors/app-error.ts';
import { parseJson } from '#shared/json/parse-json.ts';
import { readLines } from '#shared/text/lines.ts';
import type { NodeClient } from '../../client/node-client.ts';
import type { Context } from '../../terminal/context.ts';

export interface WebOptions {
  readonly port?: number;
}

const MAX_LINE_CHARACTERS = 1000;
const ASK_AGAIN_MS = 1000;

/**
 * Serves the web page until Ctrl-C. Prints an address that works once, then the next one. After a
 * restart of the daemon the page returns on the same port.
 */
export async function runWeb(context: Context, options: WebOptions): Promise<void> {
  const client = await context.client();
  const left = new AbortController();
  const release = context.interrupts.take(() => left.abort());
  try {
    let port: number | undefined;
    for (;;) {
      const shown = await showLinks(context, client, port ?? options.port, {
        ...{ isReturned: port !== undefined, signal: left.signal },
      });
      port = shown ?? port;
      context.note('the node daemon stopped; the page returns when it runs again');
      await untilRunning(client, left.signal);
    }
  } catch (error) {
    if (!left.signal.aborted) throw error;
  } finally {
    release();
  }
}

/**
 * Prints addresses until the daemon ends.
 * @returns the port of the page; undefined without an address
 * @throws AppError NODED_UNREACHABLE, CommandFailure
 */
async function showLinks(
  context: Context,
  client: NodeClient,
  port: number | undefined,
  { isReturned, signal }: { readonly isReturned: boolean; readonly signal: AbortSignal },
): Promise<number | undefined> {
  const answer = await client.open('POST /v1/web', { body: { port: port ?? 0 }, signal });
  let own: number | undefined;
  try {
    for await (const line of readLines(answer, MAX_LINE_CHARACTERS)) {
      const { url } = webLink.parse(parseJson(line));
      const isFirst = own === undefined;
      if (!isFirst) context.note('the page was opened; the next address is for another browser:');
      own = portOf(url);
      if (isFirst && !isReturned) explain(context, own);
      context.print(url);
    }
  } catch (error) {
    signal.throwIfAborted();
    // The connection of a killed daemon breaks within the answer.
    if (own === undefined) throw error;
  }
  signal.throwIfAborted();
  return own;
}

async function untilRunning(client: NodeClient, signal: AbortSignal): Promise<void> {
  for (;;) {
    await delay(ASK_AGAIN_MS, undefined, { signal });
    try {
      await client.ask('GET /v1/node', { signal });
      return;
    } catch (error) {
      if (!isAppError(error, 'NODED_UNREACHABLE')) throw error;
    }
  }
}

/** Returns the port of an `http` URL, which omits port 80. */
function portOf(url: string): number {
  return Number(new URL(url).port || 80);
}

function explain({ note }: Context, port: number): void {
  note('open this address in a browser on this host; it works once. Ctrl-C ends the page');
  note(`from another computer, first: ssh -L ${port}:127.0.0.1:${port} root@THIS-HOST`);
}
