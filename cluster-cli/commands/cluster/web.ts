import { webLink } from '#shared/contract/api.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { parseJson } from '#shared/json/parse-json.ts';
import { readLines } from '#shared/text/lines.ts';
import type { Context } from '../../terminal/context.ts';

export interface WebOptions {
  readonly port?: number;
}

const MAX_LINE_CHARACTERS = 1000;

/** Serves the web page until Ctrl-C. Prints an address that works once, then the next one. */
export async function runWeb(context: Context, { port = 0 }: WebOptions): Promise<void> {
  const client = await context.client();
  const left = new AbortController();
  const release = context.interrupts.take(() => left.abort());
  try {
    const answer = await client.open('POST /v1/web', { body: { port }, signal: left.signal });
    let isFirst = true;
    for await (const line of readLines(answer, MAX_LINE_CHARACTERS)) {
      const { url } = webLink.parse(parseJson(line));
      if (isFirst) explain(context, new URL(url).port);
      else context.note('the page was opened; the next address is for another browser:');
      context.print(url);
      isFirst = false;
    }
  } catch (error) {
    if (!left.signal.aborted) throw error;
  } finally {
    release();
  }
  if (left.signal.aborted) return;
  throw new AppError('NODED_UNREACHABLE', 'the node daemon stopped serving the web page', {
    hint: 'Run the command again when gnt-noded is running',
  });
}

function explain({ note }: Context, port: string): void {
  note('open this address in a browser on this host; it works once. Ctrl-C ends the page');
  note(`from another computer, first: ssh -L ${port}:127.0.0.1:${port} root@THIS-HOST`);
}
