import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { test, type TestContext } from 'node:test';
import { WebSocket } from 'ws';
import { createApiLab } from '../../support/api-lab.ts';
import { enter, lookup, openPage } from './web-lab.ts';

/** Opens a page with a session on an instance whose console is a socket of the test. */
async function createConsoleLab(t: TestContext) {
  const lab = await createApiLab(t);
  const path = `${lab.path}.console`;
  lab.hypervisor.consoleSocket = path;
  const { name } = await lab.start(false);
  const server: Server = createServer();
  const guest = new Promise<Socket>((resolve) => server.once('connection', resolve));
  await new Promise<void>((resolve) => server.listen(path, resolve));
  t.after(() => server.close());
  const page = await openPage(t, lab);
  const { cookie, session } = await enter(page.first);
  const open = (instance: string, headers = {}): WebSocket => {
    const { origin } = page;
    const client = new WebSocket(
      `${origin.replace('http', 'ws')}/v1/instances/${instance}/console`,
      { headers: { cookie, origin, ...headers }, lookup },
    );
    t.after(() => client.terminate());
    return client;
  };
  return { ...page, lab, name, cookie, session, guest, open };
}

async function refusalOf(client: WebSocket): Promise<string> {
  const [error] = (await once(client, 'error')) as [Error];
  return error.message;
}

test('text of the browser reaches the console, and that of the guest the browser', async (t) => {
  const { name, guest, open } = await createConsoleLab(t);
  const client = open(name);
  await once(client, 'open');
  const console = await guest;
  client.send(Buffer.from('ls\r'));
  const [typed] = (await once(console, 'data')) as [Buffer];
  assert.equal(typed.toString(), 'ls\r');
  console.write(Buffer.from([0xff, 0x1b, 0x5b]));
  const [shown] = (await once(client, 'message')) as [Buffer];
  assert.deepEqual([...shown], [0xff, 0x1b, 0x5b]);
  client.close();
  await once(console, 'close');
});

test('a console that cannot be opened is closed with the reason', async (t) => {
  const { open } = await createConsoleLab(t);
  const [status, reason] = (await once(open('nothing'), 'close')) as [number, Buffer];
  assert.equal(status, 4404);
  assert.match(reason.toString(), /nothing/);
});

test('other sites, and requests without a session, open no console', async (t) => {
  const { name, open } = await createConsoleLab(t);
  assert.match(await refusalOf(open(name, { origin: 'http://evil.example.com' })), /403/);
  assert.match(await refusalOf(open(name, { origin: 'null' })), /403/);
  assert.match(await refusalOf(open(name, { cookie: 'gnt-1=x' })), /401/);
  assert.match(await refusalOf(open(name, { host: 'evil.example.com' })), /401/);
});

test('a message that is too long ends the console', async (t) => {
  const { name, guest, open } = await createConsoleLab(t);
  const client = open(name);
  await once(client, 'open');
  const console = await guest;
  client.send(Buffer.alloc(65_537));
  const [status] = (await once(client, 'close')) as [number];
  assert.equal(status, 1009);
  console.destroy();
});

test('the end of the session ends its console', async (t) => {
  const { name, guest, open, close } = await createConsoleLab(t);
  const client = open(name);
  await once(client, 'open');
  await guest;
  close();
  await once(client, 'close');
});
