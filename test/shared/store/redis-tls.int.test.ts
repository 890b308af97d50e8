import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { makeOwnAuthority } from '../../lab/own-authority.ts';
import { freePorts } from '../../noded/support/free-ports.ts';
import { startRedis, type RedisServer } from '../../noded/support/redis-server.ts';

/** A Redis with TLS only, and a certificate of a private authority. */
let redis: RedisServer;
let directory = '';
let certFile = '';
let port = 0;

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'gnt-redis-tls-'));
  ({ certFile } = await makeOwnAuthority(directory));
  [port = 0] = await freePorts(1);
  const key = join(directory, 'key.pem');
  const files = [
    '--tls-cert-file',
    certFile,
    '--tls-key-file',
    key,
    '--tls-ca-cert-file',
    certFile,
  ];
  const more = [
    '--bind',
    '127.0.0.1',
    '--tls-port',
    `${port}`,
    '--tls-auth-clients',
    'no',
    ...files,
  ];
  redis = await startRedis({ more: [...more, '--requirepass', 'sesame'] });
});
after(async () => {
  await redis.stop();
  await rm(directory, { recursive: true });
});

/** Writes to the store, reads the record, and reports the change. */
const PROGRAM = `
import { createRedisStore } from '#shared/store/redis-store.ts';
import { parseStoreUrl } from '#shared/store/store-url.ts';
import { silentLogger } from '#shared/log/log.ts';
const server = parseStoreUrl(process.argv[1]);
try {
  const store = await createRedisStore({ server, logger: silentLogger });
  await store.commit([{ collection: 'a', id: 'x', expected: 'any', value: 'kept' }]);
  await store.watch('a', () => undefined).caughtUp();
  process.stdout.write((await store.get('a', 'x')).value);
  await store.close();
} catch (error) {
  process.stdout.write(error.code + ': ' + error.message);
}
process.exit();
`;

async function ask(url: string, environment: NodeJS.ProcessEnv): Promise<string> {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--input-type=module', '--eval', PROGRAM, url],
    { env: { ...process.env, ...environment }, cwd: import.meta.dirname },
  );
  return stdout;
}

test('a store is reached by TLS with a private authority that Node is told of, and not without', async () => {
  const url = `rediss://:sesame@127.0.0.1:${port}`;
  assert.equal(await ask(url, { NODE_EXTRA_CA_CERTS: certFile }), 'kept');
  assert.match(await ask(url, {}), /^HOST_PREREQUISITE: .*self-signed certificate/);
  const plain = `redis://:sesame@127.0.0.1:${port}`;
  assert.match(await ask(plain, { NODE_EXTRA_CA_CERTS: certFile }), /^HOST_PREREQUISITE: /);
  // The certificate is for the address, not for its name.
  const named = `rediss://:sesame@localhost:${port}`;
  assert.match(await ask(named, { NODE_EXTRA_CA_CERTS: certFile }), /^HOST_PREREQUISITE: /);
  const wrong = `rediss://:wrong@127.0.0.1:${port}`;
  assert.match(
    await ask(wrong, { NODE_EXTRA_CA_CERTS: certFile }),
    /^HOST_PREREQUISITE: .*WRONGPASS/,
  );
});
