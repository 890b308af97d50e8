import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { connect } from 'node:tls';
import { text } from 'node:stream/consumers';
import { systemClock } from '#shared/clock/clock.ts';
import { silentLogger } from '#shared/log/log.ts';
import { LoginLimit } from '../../../../noded/api/rapi/login-limit.ts';
import { startRapi } from '../../../../noded/api/rapi/rapi-server.ts';

test('of many passwords at once, ten are compared', async (t) => {
  const root = await mkdtemp(join(tmpdir(), 'gnt-rapi-'));
  t.after(() => rm(root, { recursive: true }));
  const usersFile = join(root, 'users');
  await writeFile(usersFile, '', { mode: 0o600 });
  const failed: string[] = [];
  await using server = await startRapi(
    { host: '127.0.0.1', port: 0, usersFile, certificateFile: join(root, 'rapi.pem') },
    {
      ...{ routes: [], nodeName: 'node1', onAnswered: () => undefined },
      limit: new LoginLimit(systemClock),
      logger: { ...silentLogger, warn: (event) => failed.push(event) },
    },
  );
  // Requests in one write begin before the first one is answered.
  const authorization = `Basic ${Buffer.from('alice:guess').toString('base64')}`;
  const request = `GET /2/info HTTP/1.1\r\nHost: node1\r\nAuthorization: ${authorization}\r\n\r\n`;
  const socket = connect({ host: '127.0.0.1', port: server.port, rejectUnauthorized: false });
  socket.write(request.repeat(20));
  assert.match(await text(socket), /^HTTP\/1\.1 401 /);
  assert.deepEqual(
    failed,
    Array.from({ length: 10 }, () => 'rapi.login-failed'),
  );
});
