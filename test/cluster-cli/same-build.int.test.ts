import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { build } from 'esbuild';
import { BUILD_HEADER } from '#shared/build/build-id.ts';

type Client = typeof import('../../cluster-cli/client/node-client.ts');

test('an answer is asked what it is unless it passed the schemas of this very build', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'gnt-build-'));
  t.after(() => rm(folder, { recursive: true }));
  const outfile = join(folder, 'client.mjs');
  await build({
    entryPoints: [join(import.meta.dirname, '../../cluster-cli/client/node-client.ts')],
    ...{ outfile, bundle: true, platform: 'node', format: 'esm', logLevel: 'error' },
    define: { GNT_BUILD: '"ours"' },
  });
  const { createNodeClient } = (await import(outfile)) as Client;
  let answer: { readonly build: string | null; readonly body: string };
  const server = createServer((_request, response) => {
    if (answer.build !== null) response.setHeader(BUILD_HEADER, answer.build);
    response.end(answer.body);
  });
  const socketPath = join(folder, 'noded.sock');
  server.listen(socketPath);
  t.after(() => server.close());
  await once(server, 'listening');
  const nodes = (build: string | null, body: string): Promise<unknown> => {
    answer = { build, body };
    return createNodeClient({ socketPath, startCommand: 'gnt-noded' }).ask('GET /v1/nodes');
  };
  const odd = '[{"name":"node1"}]';
  assert.deepEqual(await nodes('ours', odd), [{ name: 'node1' }]);
  for (const build of ['theirs', '', null]) {
    await assert.rejects(nodes(build, odd), { code: 'INTERNAL' });
  }
  await assert.rejects(nodes('ours', '[{"name":'), { code: 'INTERNAL' });
});
