import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { request, type RequestOptions } from 'node:https';
import { text } from 'node:stream/consumers';

export interface Asking {
  readonly method?: string;
  readonly user?: string | undefined;
  readonly password?: string | undefined;
  readonly body?: string | undefined;
  readonly type?: string;
  readonly from?: string;
}

/** Sends one request over TLS, trusts only this certificate and parses the JSON of the answer. */
export async function askRapi(
  { port, certificateFile }: { readonly port: number; readonly certificateFile: string },
  path: string,
  asking: Asking = {},
) {
  const { user, password = '', body, type = 'application/json' } = asking;
  const options: RequestOptions = {
    ...{ host: '127.0.0.1', port, path, method: asking.method ?? 'GET', agent: false },
    ca: await readFile(certificateFile),
    checkServerIdentity: () => undefined,
    // A GET may have a body: Ganeti's client sends one to wait for jobs.
    ...(body !== undefined && {
      headers: { 'content-type': type, 'content-length': Buffer.byteLength(body) },
    }),
    ...(user !== undefined && { auth: `${user}:${password}` }),
    localAddress: asking.from,
  };
  const outgoing = request(options);
  outgoing.end(body);
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
  const { statusCode: status = 0, headers } = response;
  return {
    status,
    headers: headers as Record<string, unknown>,
    body: JSON.parse(await text(response)) as unknown,
  };
}
