import { request, type IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import type { TestContext } from 'node:test';
import { systemClock } from '#shared/clock/clock.ts';
import { webLink, webSession, type WebSession } from '#shared/contract/api.ts';
import { readLines } from '#shared/text/lines.ts';
import { openLoopback } from '../../../../noded/api/web/open-loopback.ts';
import type { createApiLab } from '../../support/api-lab.ts';

export interface WebAnswer {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly text: string;
}

export type Headers = Readonly<Record<string, string>>;

/** Sends a request without the headers that a browser adds. */
export function askWeb(
  url: string,
  {
    method = 'GET',
    headers = {},
    body,
  }: { method?: string; headers?: Headers; body?: string } = {},
): Promise<WebAnswer> {
  return new Promise((resolve, reject) => {
    const asked = request(url, { method, headers, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          text: Buffer.concat(chunks).toString(),
        }),
      );
      response.on('error', reject);
    });
    asked.on('error', reject);
    asked.end(body);
  });
}

/** Opens the page of an API on a loopback port, as `gnt-cluster web` does. */
export async function openPage(
  t: TestContext,
  { served, path, dependencies }: Awaited<ReturnType<typeof createApiLab>>,
) {
  const left = new AbortController();
  t.after(() => left.abort());
  const lines = await openLoopback(0, left.signal, {
    ...{ ...served, nodeName: 'node1', version: '0.0.0', clock: systemClock },
    ...{ socketPath: path, instances: dependencies.instances },
  });
  const nextLink = readLinks(lines);
  const first = await nextLink();
  return { origin: new URL(first).origin, first, nextLink, close: () => left.abort() };
}

function readLinks(lines: Readable): () => Promise<string> {
  const all = readLines(lines, 1000);
  return async () => webLink.parse(JSON.parse((await all.next()).value ?? '')).url;
}

/** Exchanges a link for a session, as a browser does. */
export async function enter(link: string): Promise<{ cookie: string; session: WebSession }> {
  const answer = await askWeb(link);
  const [cookie = ''] = (answer.headers['set-cookie']?.[0] ?? '').split(';');
  const told = await askWeb(`${new URL(link).origin}/session`, { headers: { cookie } });
  return { cookie, session: webSession.parse(JSON.parse(told.text)) };
}
