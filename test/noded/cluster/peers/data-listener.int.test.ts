import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect as connectHttp2, constants } from 'node:http2';
import type { Duplex } from 'node:stream';
import { connect as connectTls } from 'node:tls';
import { test } from 'node:test';
import { silentLogger } from '#shared/log/log.ts';
import { startDataListener } from '../../../../noded/cluster/peers/data-listener.ts';
import { makeNodeCertificate } from '../../../../noded/cluster/peers/node-certificate.ts';
import { RECORD_KEPT_MS } from '../../../../noded/cluster/peers/data-session.ts';

test('a stream that is closed while the record of its node is read has no effect', async (t) => {
  const [own, other] = [await makeNodeCertificate('b'), await makeNodeCertificate('a')];
  const isRead = Promise.withResolvers<undefined>();
  let reads = 0;
  const streams: Duplex[] = [];
  const listener = await startDataListener({
    ...{ host: '127.0.0.1', port: 0, certificate: own, logger: silentLogger },
    fingerprintOf: async () => {
      reads += 1;
      if (reads === 2) await isRead.promise;
      return other.fingerprint;
    },
    onStream: (stream) => streams.push(stream),
  });
  t.after(() => listener[Symbol.asyncDispose]());
  const pem = { key: other.pem, cert: other.pem };
  const socket = connectTls({
    ...{ host: '127.0.0.1', port: listener.port, rejectUnauthorized: false, ...pem },
  });
  await once(socket, 'secureConnect');
  const session = connectHttp2('http://b', { createConnection: () => socket });
  session.on('error', () => undefined);
  await once(session, 'remoteSettings');
  // The first read counts for a while.
  const later = performance.now() + 2 * RECORD_KEPT_MS;
  t.mock.method(performance, 'now', () => later);
  const request = { ':method': 'CONNECT', ':authority': 'b' };
  const closed = session.request(request, { endStream: false });
  closed.on('error', () => undefined);
  // The node answers a ping after all earlier frames.
  await new Promise((resolve) => session.ping(resolve));
  assert.equal(reads, 2);
  closed.close(constants.NGHTTP2_NO_ERROR);
  await new Promise((resolve) => session.ping(resolve));
  isRead.resolve(undefined);
  const answered = session.request(request, { endStream: false });
  const [headers] = (await once(answered, 'response')) as [{ ':status': number }];
  assert.equal(headers[':status'], 200);
  assert.equal(streams.length, 1);
  session.destroy();
});
