import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { downloadLimitsOf } from '#shared/contract/download-limits.ts';
import { isAppError } from '#shared/errors/app-error.ts';
import {
  createFetchSmall,
  PublisherAway,
} from '../../../../noded/content/catalogue/fetch-small.ts';
import { listenOnLoopback } from '../../../lab/listen-on-loopback.ts';
import { makeOwnAuthority } from '../../../lab/own-authority.ts';

test('a publisher counts as unreachable only when no server answers', async (t) => {
  const dir = await mkdtemp(join(tmpdir(), 'gnt-fetch-'));
  t.after(() => rm(dir, { recursive: true }));
  const tls = await makeOwnAuthority(dir);
  const server = createServer(tls, ({ url }, response) => {
    if (url === '/list') response.end('a list');
    else if (url === '/moved') response.writeHead(302, { location: 'http://127.0.0.1/list' }).end();
    else response.writeHead(404).end();
  });
  const site = `https://127.0.0.1:${await listenOnLoopback(server)}`;
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const { signal } = new AbortController();
  const fetchAs = (imageCa?: string) =>
    createFetchSmall({
      limits: () => Promise.resolve(downloadLimitsOf({ imageCa })),
      netrcFile: join(dir, 'netrc'),
    });
  const fetchSmall = fetchAs(tls.cert);
  assert.equal((await fetchSmall(`${site}/list`, 100, signal)).toString(), 'a list');
  const isAnswered = (error: unknown): boolean =>
    isAppError(error, 'DOWNLOAD_FAILED') && !(error instanceof PublisherAway);
  for (const path of ['none', 'moved'])
    await assert.rejects(fetchSmall(`${site}/${path}`, 100, signal), isAnswered, path);
  await assert.rejects(fetchAs()(`${site}/list`, 100, signal), isAnswered);
  server.closeAllConnections();
  server.close();
  await once(server, 'close');
  await assert.rejects(fetchSmall(`${site}/list`, 100, signal), PublisherAway);
});
