import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { InstanceView } from '#shared/contract/view.ts';
import { systemClock } from '#shared/clock/clock.ts';
import { silentLogger } from '#shared/log/log.ts';
import { run } from '#shared/process/run.ts';
import {
  type ContentServer,
  startContentServer,
} from '../../../../noded/net/metad-link/content-server.ts';
import { askMirror } from '../../../../noded/content/downloads/ask-mirror.ts';
import { type Answer, ChannelLab, type Guest } from '../../../metad/support/channel-lab.ts';
import {
  askFromGuest,
  connectFromGuest,
  type GuestRequest,
} from '../../../metad/support/guest-http.ts';
import { exampleView, installingView } from '../../../metad/support/view-fixture.ts';
import { listenOnLoopback } from '../../../lab/listen-on-loopback.ts';

const NOBODY = 65_534;
const FOLDER = '/ganeti/latest/mirror';
const MODIFIED = 'Sat, 21 Nov 2026 10:00:00 GMT';
let lab: ChannelLab;
let guest: Guest;
let content: ContentServer;
let directory: string;
let revision = 0;
/** The cluster's package mirrors. */
let mirrors: Record<string, string>;
/** All requests that the mirror received. */
const asked: IncomingMessage[] = [];
const server = createServer((request, response) => {
  asked.push(request);
  void answer(request, response);
});

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const url = request.url ?? '';
  const special = SPECIAL[url];
  if (special) return special(response, request);
  const path = decodeURIComponent(url).replace(/^\/debian\//, '');
  const file = url.startsWith('/debian/')
    ? await readFile(join(directory, 'repo', path)).catch(() => null)
    : null;
  if (file === null) response.writeHead(404).end();
  else response.writeHead(200, { 'content-length': file.length }).end(file);
}

const redirect =
  (location: string) =>
  (response: ServerResponse): void =>
    void response.writeHead(302, { location }).end();
const SPECIAL: Record<string, (response: ServerResponse, request: IncomingMessage) => void> = {
  '/debian/file': (response, { headers }) => {
    const validators = { etag: '"one"', 'last-modified': MODIFIED };
    if (headers['if-modified-since'] === MODIFIED) response.writeHead(304, validators).end();
    else if (headers.range === 'bytes=2-3') {
      response.writeHead(206, { 'content-range': 'bytes 2-3/6', 'content-length': 2 }).end('23');
    } else response.writeHead(200, { ...validators, 'content-length': 6 }).end('012345');
  },
  // As servers without HEAD.
  '/debian/no-head': (response, { method }) => {
    if (method === 'HEAD') response.writeHead(405, { allow: 'GET' }).end();
    else response.writeHead(200, { etag: '"two"', 'content-length': 6 }).end('012345');
  },
  '/debian/moved': redirect('/debian/file'),
  '/debian/away': redirect('/secret'),
  '/debian/loop': redirect('/debian/loop'),
  '/secret': (response) => void response.end('SECRET'),
  '/debian/broken': (response) => void response.writeHead(503, 'Sorry').end(),
  '/debian/short': (response) => {
    response.writeHead(200, { 'content-length': 100 });
    response.write('some', () => response.destroy());
  },
  '/debian/huge': (response) =>
    void response.writeHead(200, { 'content-length': 2 ** 40 }).flushHeaders(),
  '/debian/silent': () => undefined,
  '/debian/upgrade': (response) =>
    void response.socket?.write('HTTP/1.1 101 X\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n'),
  '/debian/endless': (response) => {
    pipeline(pour, response).catch(() => undefined);
  },
};
let port: number;
let pouredBytes = 0;
const chunk = Buffer.alloc(256 * 1024);

function* pour(): Generator<Buffer> {
  for (; pouredBytes < 128 * 1024 ** 2; pouredBytes += chunk.length) yield chunk;
}

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'gnt-mirror-'));
  port = await listenOnLoopback(server);
  lab = await ChannelLab.create();
  content = await startContentServer({
    clock: systemClock,
    socketPath: lab.contentSocket,
    gid: NOBODY,
    logger: silentLogger,
    content: {
      openImage: async () => undefined,
      openRelay: async () => ({ kind: 'refusal', status: 404, reason: 'no relay' }),
      openPackage: async () => undefined,
      issueToken: async () => ({ kind: 'refused', status: 403, reason: 'no identity' }),
      findService: async () => undefined,
      findBootTree: async () => undefined,
      openMirror: async (_uuid, name, request) =>
        mirrors[name] === undefined ? undefined : askMirror(mirrors[name], request),
    },
  });
  guest = await lab.addGuest(exampleView().channel);
});
after(async () => {
  server.close();
  server.closeAllConnections();
  await content.close();
  await lab[Symbol.asyncDispose]();
  await rm(directory, { recursive: true });
});
beforeEach(async () => {
  mirrors = { debian: `http://127.0.0.1:${port}/debian` };
  await put(allowing('debian'));
  asked.length = 0;
});

function allowing(...names: string[]): InstanceView {
  const view = installingView();
  if (view.install) view.install.plan.mirrors = names;
  return view;
}

async function put(view: InstanceView): Promise<void> {
  const { status, body } = await lab.put({ ...view, revision: ++revision });
  assert.equal(status, 204, body.toString());
}

const ask = (path: string, options: GuestRequest = {}): Promise<Answer> =>
  askFromGuest(
    guest.namespace,
    /^(\/|http:)/.test(path) ? path : `${FOLDER}/debian/${path}`,
    options,
  );

async function brief(path: string): Promise<[number, string]> {
  const { status, body } = await ask(path);
  return [status, body.toString()];
}

test('apt of the guest updates and downloads from the mirror', async () => {
  const name = 'libgnt++1_1.0+b1~x_all.deb';
  const repo = join(directory, 'repo');
  const control =
    'Package: libgnt++1\nVersion: 1:1.0+b1~x\nArchitecture: all\nMaintainer: A <a@example.org>\nDescription: nothing\n';
  await mkdir(join(directory, 'deb/DEBIAN'), { recursive: true });
  await mkdir(repo);
  await writeFile(join(directory, 'deb/DEBIAN/control'), control);
  await run('dpkg-deb', [
    '--root-owner-group',
    '--build',
    join(directory, 'deb'),
    join(repo, name),
  ]);
  const deb = await readFile(join(repo, name));
  const digest = createHash('sha256').update(deb).digest('hex');
  const index = `${control}Filename: ./${name}\nSize: ${deb.length}\nSHA256: ${digest}\n`;
  await writeFile(join(repo, 'Packages'), index);

  const root = join(directory, 'apt');
  for (const folder of ['lists/partial', 'archives/partial', 'parts', 'here']) {
    await mkdir(join(root, folder), { recursive: true });
  }
  await writeFile(join(root, 'status'), '');
  await writeFile(
    join(root, 'sources.list'),
    `deb [trusted=yes] http://169.254.169.254${FOLDER}/debian ./\n`,
  );
  // Without the host's own apt settings, lists and cache.
  const settings = {
    ...{ Dir: root, 'Dir::Etc::Parts': 'parts', 'Dir::Etc::Main': 'none' },
    ...{ 'Dir::Etc::SourceList': join(root, 'sources.list'), 'Dir::Etc::SourceParts': 'parts' },
    ...{ 'Dir::State::Lists': join(root, 'lists'), 'Dir::State::Status': join(root, 'status') },
    ...{ 'Dir::Cache': root, 'Dir::Cache::Archives': join(root, 'archives') },
    ...{ 'Dir::Bin::Methods': '/usr/lib/apt/methods', 'APT::Sandbox::User': 'root' },
  };
  const lines = Object.entries(settings).map(([key, value]) => `${key} "${value}";\n`);
  await writeFile(join(root, 'apt.conf'), lines.join(''));
  const apt = (command: string): Promise<string> =>
    guest.run(
      'env',
      '-C',
      join(root, 'here'),
      `APT_CONFIG=${root}/apt.conf`,
      'LC_ALL=C',
      'apt-get',
      '-q',
      ...command.split(' '),
    );
  await apt('update --error-on=any');
  await apt('download libgnt++1');
  const [downloaded = ''] = await readdir(join(root, 'here'));
  assert.deepEqual(await readFile(join(root, 'here', downloaded)), deb);
});

test('ranges, conditions and HEAD pass, with the validators of the mirror', async () => {
  const whole = await ask('file');
  assert.deepEqual([whole.status, whole.body.toString()], [200, '012345']);
  assert.deepEqual([whole.headers.etag, whole.headers['last-modified']], ['"one"', MODIFIED]);
  const part = await ask('file', { headers: { range: 'bytes=2-3' } });
  assert.deepEqual([part.status, part.body.toString()], [206, '23']);
  assert.equal(part.headers['content-range'], 'bytes 2-3/6');
  assert.equal((await ask('file', { headers: { 'if-modified-since': MODIFIED } })).status, 304);
  const head = await ask('file', { method: 'HEAD' });
  assert.deepEqual([head.status, head.headers['content-length'], head.body.length], [200, '6', 0]);
  assert.deepEqual(
    asked.map(({ method }) => method),
    ['GET', 'GET', 'GET', 'HEAD'],
  );
});

test('a HEAD is answered by a GET when the mirror refuses HEAD', async () => {
  const head = await ask('no-head', { method: 'HEAD' });
  assert.deepEqual([head.status, head.headers['content-length'], head.body.length], [200, '6', 0]);
  assert.equal(head.headers.etag, '"two"');
  assert.deepEqual(
    asked.map(({ method }) => method),
    ['HEAD', 'GET'],
  );
});

test("the mirror gets none of the guest's other headers, and writing methods get 405", async () => {
  const headers = { authorization: 'Basic eDp5', cookie: 'a=b', 'x-evil': '1', range: 'bytes=2-3' };
  assert.equal((await ask('file?a=b', { headers })).status, 206);
  const [first] = asked;
  assert.equal(first?.url, '/debian/file');
  assert.deepEqual(Object.keys(first.headers).sort(), [
    ...['accept-encoding', 'connection', 'host', 'range', 'user-agent'],
  ]);
  for (const method of ['POST', 'PUT', 'DELETE', 'PATCH']) {
    assert.equal((await ask('file', { method })).status, 405, method);
  }
  assert.equal(asked.length, 1);
});

test('no path leads out of the mirror', async () => {
  for (const path of [
    ...['../secret', '%2e%2e/secret', 'a/%2E./../secret', '%252e%252e/secret', '..%5csecret'],
    ...['/ganeti/latest/mirror/debian//secret', '..%2fsecret', 'a%2f..%2f..%2fsecret'],
    ...['/ganeti/latest/mirror/../mirror/debian/file', '/ganeti/latest/mirror//debian/file'],
    ...['/ganeti/latest/mirror/other/file', '/ganeti/latest/mirror/%64ebian%2ffile'],
    ...['http://127.0.0.1/debian/file', 'http://169.254.169.254@127.0.0.1/debian/file'],
  ]) {
    const { status } = await ask(path);
    assert.ok([400, 403, 404].includes(status), `${path}: ${status}`);
  }
  assert.deepEqual(
    asked.map(({ url }) => url),
    [],
  );
});

test('a redirection is followed within the mirror only', async () => {
  assert.deepEqual(await brief('moved'), [200, '012345']);
  const [status, reason] = await brief('away');
  assert.equal(status, 502);
  assert.match(reason, /the redirect target is not allowed/);
  assert.ok(!asked.some(({ url }) => url === '/secret'));
  assert.match((await brief('loop'))[1], /redirects more than 5 times/);
});

test('a server that switches protocols gets 502', { timeout: 60_000 }, async () => {
  assert.match((await brief('upgrade')).join(' '), /^502 .*answered 101 \(switching protocols\)/);
});

test('a missing file gets 404, and a failure of the mirror gets 502 with the reason', async () => {
  assert.equal((await brief('none'))[0], 404);
  assert.deepEqual(await brief('broken'), [
    502,
    'the node could not provide the mirror: the mirror answered 503 Sorry\n',
  ]);
  assert.match((await brief('huge'))[1], /the file exceeds \d+ bytes/);
  await assert.rejects(ask('short'), 'half a file must not look whole');
  mirrors['debian'] = 'http://127.0.0.1:1/';
  assert.match((await brief('file')).join(' '), /^502 .*ECONNREFUSED/);
  mirrors['debian'] = 'http://169.254.169.254/latest';
  assert.match((await brief('file')).join(' '), /^502 .*link-local/);
});

test('the mirror is served only while it is allowed and during the installation', async () => {
  assert.equal((await ask(`${FOLDER}/`)).body.toString(), 'debian\n');
  mirrors = {};
  assert.equal((await ask('file')).status, 404);
  await put(allowing());
  for (const path of ['file', FOLDER]) assert.equal((await ask(path)).status, 404);
  await put(exampleView());
  for (const path of ['file', `${FOLDER}/debian`, FOLDER])
    assert.equal((await ask(path)).status, 404);
  assert.deepEqual(asked, []);
});

test('a guest that does not read pauses the mirror, and a guest that disconnects ends the request', async () => {
  pouredBytes = 0;
  const socket = connectFromGuest(guest.namespace);
  socket.write(`GET ${FOLDER}/debian/endless HTTP/1.1\r\nHost: 169.254.169.254\r\n\r\n`);
  await once(socket, 'readable');
  const ended = new Promise((resolve) => asked[0]?.socket.on('close', resolve));
  for (let before = -1; before !== pouredBytes;) {
    before = pouredBytes;
    await sleep(200); // until the flow stops: there is no event for that
  }
  assert.ok(pouredBytes < 96 * 1024 ** 2, `${pouredBytes} bytes`);
  socket.destroy();
  await ended;
});

test('requests beyond the limit of 64 get 503 and are not sent to the mirror', async () => {
  const line = `GET ${FOLDER}/debian/silent HTTP/1.1\r\nHost: 169.254.169.254\r\n\r\n`;
  const sockets = Array.from({ length: 5 }, () => connectFromGuest(guest.namespace));
  for (const socket of sockets) socket.write(line.repeat(16));
  await until(() => asked.length >= 64);
  await until(async () => (await ask('file')).status === 503);
  assert.equal(asked.length, 64);
  for (const socket of sockets) socket.destroy();
  await until(async () => (await ask('file')).status === 200);
});

async function until(isTrue: () => boolean | Promise<boolean>): Promise<void> {
  for (let tries = 0; !(await isTrue()); tries++) {
    assert.ok(tries < 200, 'it never became true');
    await sleep(50);
  }
}
