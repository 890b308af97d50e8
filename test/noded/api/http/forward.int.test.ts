import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { duplexPair } from 'node:stream';
import { test, type TestContext } from 'node:test';
import { AppError } from '#shared/errors/app-error.ts';
import { ask, createApiLab, upgrade } from '../../support/api-lab.ts';

/** Creates a node with an instance, and the API of another node that knows of it. */
async function createTwoNodes(t: TestContext) {
  const owner = await createApiLab(t);
  const state = { isAway: false };
  const { path } = await createApiLab(t, {
    forwarding: {
      instances: owner.dependencies.instances,
      owns: () => false,
      peers: {
        open: (node) => {
          if (state.isAway)
            return Promise.reject(
              new AppError('NODE_UNREACHABLE', `node '${node}' does not answer`),
            );
          return Promise.resolve(connect({ path: owner.path, allowHalfOpen: true }));
        },
      },
    },
  });
  const { name } = await owner.start(true);
  return { owner, path, name, state };
}

test('what belongs to an instance is answered by its node, as it answers', async (t) => {
  const { owner, path, name } = await createTwoNodes(t);
  const put = await ask(path, 'POST', `/v1/instances/${name}/queue`, Buffer.from('hello\0guest'));
  assert.deepEqual([put.status, put.text], [204, '']);
  assert.deepEqual(owner.metad.written.map(String), ['hello\0guest']);
  owner.metad.waiting.push(Buffer.from('hello host'));
  const taken = await ask(path, 'GET', `/v1/instances/${name}/queue?wait=1`);
  assert.deepEqual([taken.status, taken.text], [200, 'hello host']);
  assert.equal(taken.headers['x-gnt-offset'], '7');
  assert.equal(taken.headers['content-type'], 'application/octet-stream');
  const none = await ask(path, 'GET', `/v1/instances/${name}/queue`);
  assert.equal(none.status, 204);
  const refused = await ask(path, 'GET', `/v1/instances/${name}/log`);
  assert.equal(refused.status, 404);
  assert.match(refused.text, /never installed/);
  const tooLong = await ask(path, 'POST', `/v1/instances/${name}/queue`, Buffer.alloc(70_000));
  assert.equal(tooLong.status, 413);
});

test('a raw stream goes on in both directions, with its refusals', async (t) => {
  const { owner, path, name, state } = await createTwoNodes(t);
  const [guest, host] = duplexPair();
  owner.metad.guestPort = () => Promise.resolve(host);
  const { head, socket } = await upgrade(path, `/v1/instances/${name}/connect/22`);
  assert.match(head, /^HTTP\/1\.1 101 /);
  socket.write('to the guest');
  const [there] = (await once(guest, 'data')) as [Buffer];
  guest.write('to the host');
  const [back] = (await once(socket, 'data')) as [Buffer];
  assert.deepEqual([String(there), String(back)], ['to the guest', 'to the host']);
  // Each direction closes separately.
  socket.end();
  await once(guest, 'end');
  guest.end('last words');
  const [last] = (await once(socket, 'data')) as [Buffer];
  assert.equal(String(last), 'last words');
  await once(socket, 'close');
  owner.metad.guestPort = () =>
    Promise.reject(new AppError('GUEST_UNREACHABLE', 'nothing listens'));
  const refused = await upgrade(path, `/v1/instances/${name}/connect/22`);
  assert.match(refused.head, /^HTTP\/1\.1 502 [^]*GUEST_UNREACHABLE/);
  refused.socket.destroy();
  state.isAway = true;
  const silent = await upgrade(path, `/v1/instances/${name}/console`);
  assert.match(silent.head, /^HTTP\/1\.1 503 [^]*NODE_UNREACHABLE/);
  silent.socket.destroy();
  const asked = await ask(path, 'GET', `/v1/instances/${name}/disks`);
  assert.equal(asked.status, 503);
});

test('who stops waiting ends the question on the other node too', async (t) => {
  const { owner, path, name } = await createTwoNodes(t);
  const gone = Promise.withResolvers<undefined>();
  const asked = Promise.withResolvers<undefined>();
  owner.metad.readQueue = (_uuid?: string, options?: { signal?: AbortSignal }) => {
    options?.signal?.addEventListener('abort', () => gone.resolve(undefined));
    asked.resolve(undefined);
    return new Promise(() => undefined);
  };
  const socket = connect(path);
  socket.write(`GET /v1/instances/${name}/queue?wait=60 HTTP/1.1\r\nHost: noded\r\n\r\n`);
  await asked.promise;
  socket.destroy();
  await gone.promise;
});
