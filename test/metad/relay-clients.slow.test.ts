import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { request as requestHttp } from 'node:http';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { openRelayLab, type RelayLab, SECRET } from '../lab/relay-lab.ts';
import { unpackPackages } from './support/foreign-clients.ts';
import { connectFromGuest } from './support/guest-http.ts';

/** Real clients in the network namespace of a guest, which reaches nothing but the service. */

const RELAY = 'http://169.254.169.254/relay';
let lab: RelayLab;
let root: string;
/** Authorization headers that the server received. */
const logins = new Set<string | undefined>();

before(async () => {
  lab = await openRelayLab(
    (request, response) => void answer(request, response).catch(() => response.destroy()),
    ['gnt:relay=git', 'gnt:relay=npm', 'gnt:relay=pip', 'gnt:relay=llm'],
  );
  root = lab.directory;
  const basic = { kind: 'basic', user: 'x-access-token' } as const;
  await lab.configure({
    git: { url: `${lab.origin}/git`, auth: basic },
    npm: { url: lab.origin, paths: ['/@lab/', '/@lab%2fhello'], auth: { kind: 'bearer' } },
    pip: { url: `${lab.origin}/pip`, auth: { kind: 'basic', user: '__token__' } },
    llm: { url: `${lab.origin}/v1`, auth: { kind: 'header', name: 'x-api-key' } },
  });
  await lab.serve();
});
after(async () => lab[Symbol.asyncDispose]());

/** Serves like a forge, a registry, a package index and a model, each only with its credential. */
async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { pathname } = new URL(request.url ?? '', lab.origin);
  const { authorization, 'x-api-key': apiKey } = request.headers;
  logins.add(authorization ?? String(apiKey));
  const isBasic = (user: string) =>
    authorization === `Basic ${Buffer.from(`${user}:${SECRET}`).toString('base64')}`;
  if (pathname.startsWith('/git/') && isBasic('x-access-token')) return serveGit(request, response);
  if (/^\/@lab(\/|%2f)/i.test(pathname) && authorization === `Bearer ${SECRET}`)
    return serveNpm(`/npm${decodeURIComponent(pathname)}`, response);
  if (pathname.startsWith('/pip/') && isBasic('__token__'))
    return serveFile(
      join(root, pathname.endsWith('/') ? `${pathname}index.html` : pathname),
      response,
    );
  if (pathname === '/v1/chat/completions' && apiKey === SECRET)
    return serveModel(request, response);
  if (pathname === '/v1/echo' && apiKey === SECRET) return void request.pipe(response);
  response.writeHead(401, { 'www-authenticate': 'Basic realm="x"' }).end();
}

/** git-http-backend(1) over CGI. */
async function serveGit(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const url = new URL(request.url ?? '', lab.origin);
  const { headers } = request;
  const backend = spawn('git', ['http-backend'], {
    env: {
      ...{ PATH: '/usr/bin:/bin', GIT_PROJECT_ROOT: join(root, 'repos'), GIT_HTTP_EXPORT_ALL: '1' },
      ...{ REMOTE_USER: 'me', REQUEST_METHOD: request.method, QUERY_STRING: url.search.slice(1) },
      PATH_INFO: url.pathname.replace(/^\/git/, ''),
      CONTENT_TYPE: headers['content-type'] ?? '',
      HTTP_CONTENT_ENCODING: headers['content-encoding'] ?? '',
      HTTP_GIT_PROTOCOL: String(headers['git-protocol'] ?? ''),
      ...(headers['content-length'] && { CONTENT_LENGTH: headers['content-length'] }),
    },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  backend.stdin.on('error', () => undefined);
  request.pipe(backend.stdin);
  const chunks: Buffer[] = [];
  for await (const chunk of backend.stdout) chunks.push(chunk as Buffer);
  const whole = Buffer.concat(chunks);
  const end = whole.indexOf('\r\n\r\n');
  const lines = whole.subarray(0, end).toString().split('\r\n');
  const fields = lines.map((line) => line.split(': ', 2) as [string, string]);
  const status = fields.find(([name]) => name === 'Status')?.[1];
  response.writeHead(
    Number(status?.slice(0, 3) ?? 200),
    fields.filter(([name]) => name !== 'Status').flat(),
  );
  response.end(whole.subarray(end + 4));
}

async function serveFile(path: string, response: ServerResponse): Promise<void> {
  const type = path.endsWith('.html') ? 'text/html' : 'application/octet-stream';
  const bytes = await readFile(path).catch(() => null);
  if (bytes === null) response.writeHead(404).end();
  else response.writeHead(200, { 'content-type': type, 'content-length': bytes.length }).end(bytes);
}

async function serveNpm(path: string, response: ServerResponse): Promise<void> {
  if (path !== '/npm/@lab/hello') return serveFile(join(root, path), response);
  const tarball = await readFile(join(root, 'npm/@lab/hello/-/hello-1.0.0.tgz'));
  const integrity = `sha512-${createHash('sha512').update(tarball).digest('base64')}`;
  const dist = { tarball: `${lab.origin}/@lab/hello/-/hello-1.0.0.tgz`, integrity };
  const version = { name: '@lab/hello', version: '1.0.0', dist };
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(
    JSON.stringify({
      name: '@lab/hello',
      'dist-tags': { latest: '1.0.0' },
      versions: { '1.0.0': version },
    }),
  );
}

async function serveModel(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { messages } = JSON.parse(await text(request)) as { messages: { content: string }[] };
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const word of ['you', 'said', messages[0]?.content]) {
    response.write(`data: ${JSON.stringify({ word })}\n\n`);
    await sleep(100);
  }
  response.end('data: [DONE]\n\n');
}

test('git clones and pushes without a credential in the guest', async () => {
  const repo = join(root, 'repos/team/app.git');
  await mkdir(repo, { recursive: true });
  execFileSync('git', ['init', '-q', '--bare', '-b', 'main', repo]);
  const work = join(root, 'work');
  const git = (...args: string[]) =>
    lab.guest.run(
      ...(['env', `HOME=${root}`, 'GIT_TERMINAL_PROMPT=0', 'GIT_CONFIG_NOSYSTEM=1'] as const),
      ...['git', '-c', 'user.name=a', '-c', 'user.email=a@example.com', ...args],
    );
  await git('clone', '-q', `${RELAY}/git/team/app.git`, work);
  // Longer than http.postBuffer, so that git sends chunks.
  await writeFile(join(work, 'big'), randomBytes(3_000_000));
  await git('-C', work, 'add', 'big');
  await git('-C', work, 'commit', '-qm', 'one');
  await git('-C', work, 'push', '-q', 'origin', 'HEAD:main');
  const copy = join(root, 'copy');
  await git('clone', '-q', `${RELAY}/git/team/app.git`, copy);
  assert.deepEqual(await readFile(join(copy, 'big')), await readFile(join(work, 'big')));
  const config = await readFile(join(work, '.git/config'), 'utf8');
  assert.equal(config.includes(SECRET), false);
});

test('npm installs a scoped package of a private registry', async () => {
  const source = join(root, 'npm-source/package');
  const folder = join(root, 'npm/@lab/hello/-');
  await mkdir(source, { recursive: true });
  await mkdir(folder, { recursive: true });
  await writeFile(join(source, 'package.json'), '{"name":"@lab/hello","version":"1.0.0"}');
  await writeFile(join(source, 'index.js'), 'module.exports = "hello";');
  const tarball = join(folder, 'hello-1.0.0.tgz');
  execFileSync('tar', ['-czf', tarball, '-C', join(root, 'npm-source'), 'package']);
  const project = join(root, 'project');
  await mkdir(project);
  await writeFile(join(project, 'package.json'), '{"name":"project","version":"1.0.0"}');
  await lab.guest.run(
    ...(['env', '-C', project, `HOME=${root}`, 'npm', 'install', '@lab/hello'] as const),
    ...[`--registry=${RELAY}/npm/`, '--replace-registry-host=always', '--no-audit', '--no-fund'],
    ...['--no-update-notifier', `--cache=${join(root, 'npm-cache')}`, '--fetch-retries=0'],
  );
  const installed = join(project, 'node_modules/@lab/hello/index.js');
  assert.match(await readFile(installed, 'utf8'), /hello/);
});

test('pip installs from a private index with relative links', async () => {
  const packages = await unpackPackages('python3-pip', [
    'python3-pip',
    'python3-setuptools',
    'python3-wheel',
  ]);
  const index = join(root, 'pip/simple/hello-lab');
  const files = join(root, 'pip/files');
  await mkdir(index, { recursive: true });
  await mkdir(files, { recursive: true });
  const wheel = 'hello_lab-1.0-py3-none-any.whl';
  await writeFile(join(index, 'index.html'), `<a href="../../files/${wheel}">${wheel}</a>`);
  const script = `
import sys, zipfile
info = 'hello_lab-1.0.dist-info'
with zipfile.ZipFile(sys.argv[1], 'w') as z:
    z.writestr('hello_lab.py', 'text = "hello"\\n')
    z.writestr(info + '/METADATA', 'Metadata-Version: 2.1\\nName: hello-lab\\nVersion: 1.0\\n')
    z.writestr(info + '/WHEEL', 'Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
    z.writestr(info + '/RECORD', '')`;
  execFileSync('/usr/bin/python3', ['-c', script, join(files, wheel)]);
  const target = join(root, 'pip-target');
  await lab.guest.run(
    ...(['env', `HOME=${root}`, `PYTHONPATH=${packages}/usr/lib/python3/dist-packages`] as const),
    ...[
      'PIP_CONFIG_FILE=/dev/null',
      '/usr/bin/python3',
      '-m',
      'pip',
      'install',
      '-q',
      '--target',
      target,
    ],
    ...[
      '--index-url',
      `${RELAY}/pip/simple/`,
      '--trusted-host',
      '169.254.169.254',
      '--retries',
      '0',
    ],
    ...['--no-cache-dir', '--disable-pip-version-check', 'hello-lab'],
  );
  assert.match(await readFile(join(target, 'hello_lab.py'), 'utf8'), /hello/);
});

test('curl reads the streamed answer of a language model', async () => {
  const body = JSON.stringify({ stream: true, messages: [{ role: 'user', content: 'hi' }] });
  const answered = await lab.guest.run(
    ...(['curl', '-sSN', '-H', 'content-type: application/json', '-d', body] as const),
    `${RELAY}/llm/chat/completions`,
  );
  assert.match(answered, /data: \[DONE\]/);
  assert.match(answered, /"word":"hi"/);
});

test(
  'a body may take longer than the 30 seconds of other requests',
  { timeout: 60_000 },
  async () => {
    const outgoing = requestHttp({
      ...{ host: '169.254.169.254', path: '/relay/llm/echo', method: 'POST' },
      createConnection: () => connectFromGuest(lab.guest.namespace),
    });
    outgoing.write('a');
    // The server answers while the body still arrives.
    const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage];
    await sleep(32_000);
    outgoing.end('b');
    assert.equal(await text(incoming), 'ab');
  },
);

test('all requests had the credential of the node, and no program in the guest has it', () => {
  assert.equal(logins.has(undefined), false);
  assert.equal(logins.size, 4);
});
