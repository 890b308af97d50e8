import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { test, type TestContext } from 'node:test';
import { WebSocket } from 'ws';
import { createApiLab } from '../../support/api-lab.ts';
import { askWeb, enter, lookup, openPage } from './web-lab.ts';

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

/** Asks for a console as a program without the manners of a browser does. */
function askForConsole(
  t: TestContext,
  { origin, name, cookie }: { origin: string; name: string; cookie: string },
  headers: readonly string[],
): Socket {
  const { host, port } = new URL(origin);
  const socket = connect(Number(port), '127.0.0.1');
  t.after(() => socket.destroy());
  const own = [`Host: ${host}`, `Origin: ${origin}`, `Cookie: ${cookie}`, 'Connection: Upgrade'];
  const lines = [...own, 'Upgrade: websocket', ...headers];
  socket.write(`GET /v1/instances/${name}/console HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`);
  return socket;
}

const HANDSHAKE = ['Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=='];

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

test('an invalid handshake leaves no console open', async (t) => {
  const lab = await createConsoleLab(t);
  const [answer] = (await once(askForConsole(t, lab, []), 'data')) as [Buffer];
  assert.match(answer.toString(), /^HTTP\/1.1 400 /);
  await once((await lab.guest).resume(), 'close', { signal: AbortSignal.timeout(5000) });
});

test('input after the end of the session does not reach the guest', async (t) => {
  const lab = await createConsoleLab(t);
  // This client does not answer the close frame.
  const client = askForConsole(t, lab, HANDSHAKE);
  await once(client, 'data');
  const typed: Buffer[] = [];
  const console = await lab.guest;
  console.on('data', (data: Buffer) => typed.push(data));
  const frame = (text: string): Buffer =>
    Buffer.from([0x82, 0x80 | text.length, 0, 0, 0, 0, ...Buffer.from(text)]);
  client.write(frame('before'));
  await once(console, 'data');
  const { cookie, origin, session } = lab;
  const headers = { cookie, 'x-gnt-csrf': session.csrf };
  const { status } = await askWeb(`${origin}/logout`, { method: 'POST', headers });
  assert.equal(status, 204);
  client.write(frame('after'));
  await once(console, 'close', { signal: AbortSignal.timeout(5000) });
  assert.equal(Buffer.concat(typed).toString(), 'before');
});
