import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { request } from 'node:https';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { systemClock } from '#shared/clock/clock.ts';
import { silentLogger } from '#shared/log/log.ts';
import { planPublished } from '../../../../noded/instances/identity/published.ts';
import { startIdentityServer } from '../../../../noded/api/identity/identity-server.ts';
import type { Listening } from '../../../../noded/api/rapi/listen.ts';
import { type IdentityLab, openIdentityLab } from '../../../lab/identity-lab.ts';
import { type Answer, readAnswer } from '../../../metad/support/channel-lab.ts';

let directory: string;
let lab: IdentityLab;
let server: Listening;
let isAway = false;

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'gnt-identity-server-'));
  lab = await openIdentityLab(systemClock, []);
  await lab.configure({ policy: 'yes', issuer: 'https://id.example.com' });
  server = await startIdentityServer(
    { host: '127.0.0.1', port: 0, certificateFile: join(directory, 'identity.pem') },
    {
      load: async () => {
        if (isAway) throw new Error('SECRET');
        const keys = await lab.clusters.loadIdentityKeys();
        return planPublished(await lab.clusters.load(), keys, systemClock.now());
      },
      nodeName: 'node1.example.com',
      logger: silentLogger,
    },
  );
});
after(async () => {
  await server[Symbol.asyncDispose]();
  await lab[Symbol.asyncDispose]();
  await rm(directory, { recursive: true });
});

async function ask(path: string, method = 'GET', localAddress = '127.0.0.1'): Promise<Answer> {
  const ca = await readFile(join(directory, 'identity.pem'));
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const outgoing = request(
    {
      ...{ host: '127.0.0.1', port: server.port, servername: 'node1.example.com', ca },
      ...{ path, method, agent: false, localAddress },
    },
    (incoming) => resolve(readAnswer(incoming)),
  );
  outgoing.on('error', reject);
  outgoing.end();
  return promise;
}

test('verifiers find the key set by OpenID discovery, and no private member in it', async () => {
  const discovery = await ask('/.well-known/openid-configuration');
  assert.equal(discovery.headers['content-type'], 'application/json');
  assert.match(
    discovery.body.toString(),
    /"jwks_uri": "https:\/\/id.example.com\/.well-known\/jwks.json"/,
  );
  const keys = await ask('/.well-known/jwks.json?x=1');
  assert.equal(keys.headers['cache-control'], 'public, max-age=300');
  assert.match(keys.body.toString(), /"kty": "RSA"/);
  assert.doesNotMatch(keys.body.toString(), /"(d|p|q|dp|dq|qi|k)":/);
  assert.match((await ask('/spiffe/bundle.json')).body.toString(), /"use": "jwt-svid"/);
  assert.match((await ask('/ec2-certificates.pem')).body.toString(), /^-----BEGIN CERTIFICATE/);
});

for (const path of ['/', '/__proto__', '/constructor', '/../identity.pem', '//', '/%2e'])
  test(`the key server has nothing at ${path}`, async () => {
    assert.equal((await ask(path)).status, 404);
  });

test('the key server answers reads alone, and names no internals of a failure', async () => {
  assert.equal((await ask('/.well-known/jwks.json', 'POST')).status, 405);
  assert.equal((await ask('/.well-known/jwks.json', 'HEAD')).body.length, 0);
  isAway = true;
  try {
    // The last documents are kept for a second.
    let answer = await ask('/.well-known/jwks.json');
    while (answer.status === 200) answer = await ask('/.well-known/jwks.json');
    assert.deepEqual([answer.status, answer.headers['retry-after']], [503, '5']);
    assert.doesNotMatch(answer.body.toString(), /SECRET/);
  } finally {
    isAway = false;
  }
  assert.equal((await ask('/.well-known/jwks.json')).status, 200);
});

async function hold(count: number, localAddress: string): Promise<readonly Socket[]> {
  const sockets = Array.from({ length: count }, () =>
    connect({ host: '127.0.0.1', port: server.port, localAddress }),
  );
  for (const socket of sockets) socket.on('error', () => undefined);
  await Promise.all(sockets.map((socket) => once(socket, 'connect')));
  return sockets;
}

test('silent connections of one address keep no other address from the keys', async () => {
  const sockets = await hold(300, '127.0.0.2');
  try {
    assert.equal((await ask('/.well-known/jwks.json')).status, 200);
    await assert.rejects(ask('/.well-known/jwks.json', 'GET', '127.0.0.2'));
  } finally {
    for (const socket of sockets) socket.destroy();
  }
  // The slots of ended connections are free again.
  for (let count = 0; count < 40; count++)
    await ask('/.well-known/jwks.json', 'GET', '127.0.0.2').catch(() => setTimeout(50));
  assert.equal((await ask('/.well-known/jwks.json', 'GET', '127.0.0.2')).status, 200);
});
