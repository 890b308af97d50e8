import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { connect } from 'node:tls';
import { silentLogger } from '#shared/log/log.ts';
import { startIdentityServer } from '../../../../noded/api/identity/identity-server.ts';

test('a request to the key server that never ends is cut after ten seconds', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'gnt-identity-server-'));
  try {
    await using server = await startIdentityServer(
      { host: '127.0.0.1', port: 0, certificateFile: join(directory, 'identity.pem') },
      { load: () => Promise.resolve({}), nodeName: 'node1.example.com', logger: silentLogger },
    );
    const socket = connect({ host: '127.0.0.1', port: server.port, rejectUnauthorized: false });
    const startMs = performance.now();
    socket.write('GET / HTTP/1.1\r\nHo');
    socket.resume();
    await once(socket, 'close');
    const tookMs = performance.now() - startMs;
    assert.ok(tookMs > 9000 && tookMs < 20_000, `${tookMs} ms`);
  } finally {
    await rm(directory, { recursive: true });
  }
});
