import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createHostClient } from '../../../../appliance/agent/channel/host-client.ts';
import { listenOnLoopback } from '../../../lab/listen-on-loopback.ts';

test('repeats a request until the metadata service listens', async () => {
  const server = createServer((_, response) => response.end('{"colour": ["blue", "public"]}'));
  const port = await listenOnLoopback(server);
  server.close();
  await once(server, 'close');
  const client = createHostClient({ host: '127.0.0.1', port });
  const asked = client.fetchOsParameters();
  await sleep(200);
  server.listen(port, '127.0.0.1');
  assert.deepEqual(await asked, { colour: ['blue', 'public'] });
  server.closeAllConnections();
  server.close();
});

test('names the path when events cannot be posted', async () => {
  const client = createHostClient({ host: '127.0.0.1', port: 1 });
  await assert.rejects(client.postEvents([]), {
    code: 'METAD_UNAVAILABLE',
    message: /install\/events/,
  });
});
