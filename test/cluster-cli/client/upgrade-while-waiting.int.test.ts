import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { build } from 'esbuild';

type Client = typeof import('../../../cluster-cli/client/node-client.ts');
type Events = typeof import('../../../cluster-cli/client/job-events.ts');

test('who watches a job understands the answer that comes after its own files were replaced', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'gnt-upgrade-'));
  t.after(() => rm(folder, { recursive: true }));
  const bundle = join(folder, 'bundle');
  const client = join(import.meta.dirname, '../../../cluster-cli/client');
  await build({
    entryPoints: [join(client, 'node-client.ts'), join(client, 'job-events.ts')],
    ...{ outdir: bundle, bundle: true, splitting: true, outExtension: { '.js': '.mjs' } },
    ...{ platform: 'node', format: 'esm', logLevel: 'error', define: { GNT_BUILD: '"ours"' } },
  });
  const { createNodeClient } = (await import(join(bundle, 'node-client.mjs'))) as Client;
  const { watchJobEvents } = (await import(join(bundle, 'job-events.mjs'))) as Events;
  let isReplaced = false;
  const server = createServer((_request, response) => {
    if (!isReplaced) {
      response.end();
      return;
    }
    response.statusCode = 404;
    response.end(JSON.stringify({ code: 'JOB_NOT_FOUND', message: 'there is no job 1' }));
  });
  const socketPath = join(folder, 'noded.sock');
  server.listen(socketPath);
  t.after(() => server.close());
  await once(server, 'listening');
  const watched = watchJobEvents(createNodeClient({ socketPath, startCommand: 'gnt-noded' }), 1);
  assert.deepEqual((await watched.next()).value, { type: 'reconnecting' });
  await rm(bundle, { recursive: true });
  isReplaced = true;
  await assert.rejects(watched.next(), { code: 'JOB_NOT_FOUND' });
});
