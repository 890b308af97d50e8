import { request } from 'node:http';
import { request as requestTls } from 'node:https';
import type { LookupFunction } from 'node:net';
import type { Readable } from 'node:stream';
import type { TestContext } from 'node:test';
import { systemClock } from '#shared/clock/clock.ts';
import { createHash } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LoginLimit } from '../../../../noded/api/rapi/login-limit.ts';
import { REALM } from '../../../../noded/api/rapi/users-file.ts';
import { startWeb } from '../../../../noded/api/web/start-web.ts';
import { createUserHandlers } from '../../../../noded/api/web/user-handlers.ts';
import { webLink, webSession, type WebSession } from '#shared/contract/api.ts';
import { readLines } from '#shared/text/lines.ts';
import { openLoopback } from '../../../../noded/api/web/open-loopback.ts';
import { type Answer, createApiLab, readAnswer } from '../../support/api-lab.ts';

export type Headers = Readonly<Record<string, string>>;

/** Sends a request without the headers that a browser adds. */
export function askWeb(
  url: string,
  {
    method = 'GET',
    headers = {},
    body,
  }: { method?: string; headers?: Headers; body?: string } = {},
): Promise<Answer> {
  // A test's certificate is its own.
  const options = { method, headers, agent: false, rejectUnauthorized: false, lookup } as const;
  const ask = url.startsWith('https:') ? requestTls : request;
  return readAnswer(ask(url, options).end(body));
}

/** Resolves names below `localhost`, as browsers do. */
export const lookup: LookupFunction = (_name, { all = false }, done) => {
  const address = '127.0.0.1';
  if (all) done(null, [{ address, family: 4 }]);
  else done(null, address, 4);
};

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

/** The web page over TLS with users of a file, as `gnt-noded --web` serves it. */
export async function createWebLab(t: TestContext, users: readonly string[]) {
  const lab = await createApiLab(t);
  const { dependencies, served, path } = lab;
  const folder = await mkdtemp(join(tmpdir(), 'gnt-web-'));
  t.after(() => rm(folder, { recursive: true }));
  const usersFile = join(folder, 'users');
  const limit = new LoginLimit(systemClock);
  const writeUsers = (lines: readonly string[], password = PASSWORD): Promise<void> =>
    writeFile(usersFile, lines.map((line) => `${formatUser(line, password)}\n`).join(''), {
      mode: 0o600,
    });
  await writeUsers(users);
  const certificateFile = join(folder, 'web.pem');
  const server = await startWeb(
    { host: '127.0.0.1', port: 0, usersFile, certificateFile },
    {
      ...{ ...served, nodeName: 'node1', version: '0.0.0', clock: systemClock, limit },
      ...{ socketPath: path, instances: dependencies.instances },
      handlers: createUserHandlers(served.handlers, dependencies),
    },
  );
  t.after(() => server[Symbol.asyncDispose]());
  const origin = `https://127.0.0.1:${server.port}`;
  const tryLogin = (user: string, password = PASSWORD): Promise<Answer> =>
    askWeb(`${origin}/login`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ user, password }),
    });
  const login = async (user: string) => {
    const answer = await tryLogin(user);
    const [cookie = ''] = (answer.headers['set-cookie']?.[0] ?? '').split(';');
    const told = await askWeb(`${origin}/session`, { headers: { cookie } });
    const session = webSession.parse(JSON.parse(told.text));
    const headers = { cookie, 'x-gnt-csrf': session.csrf };
    const ask = (key: string, body?: object): Promise<Answer> => {
      const [method = '', at = ''] = key.split(' ');
      return askWeb(`${origin}${at}`, {
        ...{ method, headers },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
    };
    return { session, cookie, headers, ask };
  };
  return { ...lab, origin, limit, login, tryLogin, writeUsers };
}

const PASSWORD = 'correct horse';

function formatUser(line: string, password: string): string {
  const [name = '', ...options] = line.split(' ');
  const digest = createHash('md5').update(`${name}:${REALM}:${password}`).digest('hex');
  return [name, `{HA1}${digest}`, ...options].join(' ');
}
