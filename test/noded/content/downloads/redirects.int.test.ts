import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer, text } from 'node:stream/consumers';
import { after, beforeEach, test } from 'node:test';
import { downloadLimitsOf } from '#shared/contract/download-limits.ts';
import { isAppError } from '#shared/errors/app-error.ts';
import { Secret } from '#shared/secret/secret.ts';
import { silentLogger } from '#shared/log/log.ts';
import { systemClock } from '#shared/clock/clock.ts';
import { askMirror } from '../../../../noded/content/downloads/ask-mirror.ts';
import { openPackage } from '../../../../noded/content/downloads/package-source.ts';
import { ImageCache } from '../../../../noded/content/images/image-cache.ts';

/**
 * The test's own internet: a network namespace where the documentation's addresses (RFC 5737) and
 * 10.0.0.0/8 lead to servers of this file without being addresses of the host, and a mount
 * namespace whose resolver is this file too.
 */
const INSIDE = 'GNT_TEST_OWN_INTERNET';
const SETUP = `
  set -e
  ip link set lo up
  ip route add local 203.0.113.0/24 dev lo
  ip route add local 10.0.0.0/8 dev lo
  echo nameserver 127.0.0.53 > "$1/resolv.conf"
  mount --bind "$1/resolv.conf" "$(readlink -f /etc/resolv.conf)"
  exec "$2" "$3"
`;
const [EVIL, OTHER, INTRANET] = ['203.0.113.7', '203.0.113.8', '10.1.2.3'];
const content = Buffer.from('an image, or what somebody took for one\n'.repeat(1000));
const { signal } = new AbortController();

if (process.env[INSIDE] === undefined) {
  test('the tests of redirections pass in a separate network namespace', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'gnt-redirects-'));
    try {
      const own = ['sh', '-c', SETUP, 'sh', directory, process.execPath, import.meta.filename];
      const child = spawnSync('unshare', ['--net', '--mount', '--propagation=private', ...own], {
        // Its own test runner.
        env: { ...process.env, NODE_TEST_CONTEXT: undefined, [INSIDE]: directory },
        encoding: 'utf8',
        timeout: 120_000,
      });
      assert.equal(child.status, 0, `${child.stdout}\n${child.stderr}`);
    } finally {
      await rm(directory, { recursive: true });
    }
  });
} else {
  await attack(process.env[INSIDE]);
}

async function attack(directory: string): Promise<void> {
  /** Answers by name, in order; the last one stays. */
  const names = new Map<string, string[]>();
  const dns = createSocket('udp4').bind(53, '127.0.0.53');
  dns.on('message', (query, { port, address }) =>
    dns.send(answerQuery(query, names), port, address),
  );

  const asked: { readonly at: string; readonly login: string | undefined }[] = [];
  const note = ({ socket, headers }: IncomingMessage): void => {
    const at = socket.localAddress?.replace('::ffff:', '') ?? '';
    asked.push({ at, login: headers.authorization?.split(' ')[0] });
  };
  let location = '';
  let failures = 0;
  const server = createServer((request, response) => {
    note(request);
    const isEvil = request.socket.localAddress?.endsWith(EVIL) === true;
    if (isEvil && failures-- > 0) response.writeHead(503).end();
    else if (isEvil && /\/go/.test(request.url ?? '')) response.writeHead(302, { location }).end();
    else response.end(content);
  });
  server.listen(80, '0.0.0.0');
  // A service for this host only, which trusts all clients.
  const inner = createServer((request, response) => {
    note(request);
    response.end('secret');
  });
  inner.listen(8081, '::');
  const tls = makeCertificate(directory);
  const startTls = (port: number, listener: RequestListener) =>
    createTlsServer({ key: tls.key, cert: tls.cert }, listener).listen(port, EVIL);
  const secure = startTls(443, (request, response) => {
    note(request);
    response.writeHead(302, { location }).end();
  });
  const otherPort = startTls(8443, (request, response) => {
    note(request);
    response.end(content);
  });
  await Promise.all([inner, secure, otherPort].map((each) => once(each, 'listening')));
  after(() => {
    dns.close();
    for (const each of [server, inner, secure, otherPort]) {
      each.close();
      each.closeAllConnections();
    }
  });
  const netrcFile = join(directory, 'netrc');
  await writeFile(netrcFile, `machine ${EVIL} login me password mine\ndefault login x password y`);
  let caches = 0;
  let remoteHosts: string[] = [];
  const fetchImage = async (url: string): Promise<Buffer> => {
    const cache = new ImageCache({
      dir: join(directory, `cache-${(caches += 1)}`),
      maxBytes: 1e9,
      limits: async () => downloadLimitsOf({ imageCa: tls.cert, remoteHosts }),
      logger: silentLogger,
      clock: systemClock,
      retryDelayMs: 1,
      netrcFile,
    });
    const image = await cache.fetch(url, { signal });
    return readFile(image.path);
  };
  const fetchPackage = async (url: string): Promise<Buffer> => {
    const login = { user: 'joe', password: new Secret('hunter22') };
    const options = {
      signal,
      retryDelayMs: 1,
      limits: downloadLimitsOf({ imageCa: tls.cert, remoteHosts }),
      ...login,
    };
    return buffer((await openPackage(`${url}?x.tar.gz`.replace('?x', '/x'), options)).stream);
  };
  const isRefused = (pattern: RegExp) => (error: unknown) => {
    assert.ok(isAppError(error), String(error));
    assert.match(error.message, pattern);
    return true;
  };
  const hosts = (): string[] => asked.map(({ at }) => at);
  beforeEach(() => {
    asked.length = 0;
    failures = 0;
    remoteHosts = [];
    names.clear();
  });

  test('a URL of the remote API is refused at this host and its network, except for allowed hosts', async () => {
    names.set('inner.test', ['127.0.0.1']);
    names.set('intra.test', [INTRANET]);
    names.set('images.test', [INTRANET]);
    const own = [`http://${INTRANET}/`, 'http://intra.test/', 'http://INTRA.test./'];
    for (const url of [
      'http://127.1:8081/',
      'http://localhost:8081/',
      'http://inner.test:8081/',
      ...own,
    ])
      await assert.rejects(fetchImage(`${url}a.raw#remote`), isRefused(/refused/), url);
    assert.deepEqual(asked, [], 'nobody was asked');
    remoteHosts = ['images.test', '10.2.0.0/16'];
    for (const url of own)
      await assert.rejects(fetchImage(`${url}a.raw#remote`), isRefused(/--remote-hosts/), url);
    assert.ok((await fetchImage('http://images.test/a.raw#remote')).equals(content));
    assert.ok((await fetchImage(`http://${OTHER}/a.raw#remote`)).equals(content));
    // The operator's URLs still work.
    assert.ok((await fetchImage(`http://${INTRANET}/a.raw`)).equals(content));
    location = `http://${INTRANET}/image`;
    await assert.rejects(fetchImage(`http://${EVIL}/go#remote`), isRefused(/refused/));
    remoteHosts = ['10.0.0.0/8'];
    for (const url of own) assert.ok((await fetchImage(`${url}a.raw#remote`)).equals(content), url);
  });

  test("a cached image of the operator is not served for a remote user's URL", async () => {
    const cache = new ImageCache({
      dir: join(directory, 'shared-cache'),
      maxBytes: 1e9,
      limits: async () => downloadLimitsOf({}),
      logger: silentLogger,
      clock: systemClock,
      retryDelayMs: 1,
      netrcFile,
    });
    const url = `http://${INTRANET}/own.raw`;
    const image = await cache.fetch(url, { signal });
    await assert.rejects(cache.fetch(`${url}#remote`, { signal }), isRefused(/refused/));
    image.release();
  });

  test('a name that resolves to the own network at the second attempt is refused', async () => {
    names.set('moving.test', [EVIL, INTRANET]);
    failures = 1;
    await assert.rejects(fetchImage('http://moving.test/a.raw#remote'), isRefused(/refused/));
    assert.deepEqual(hosts(), [EVIL]);
  });

  test('a redirection to this host or its network is refused in every spelling, for images and packages', async () => {
    names.set('inner.test', ['127.0.0.1']);
    names.set('intra.test', [INTRANET]);
    for (const target of [
      ...['http://127.0.0.1:8081/', 'http://localhost:8081/', 'http://[::1]:8081/'],
      ...['http://0.0.0.0:8081/', 'http://[::]:8081/', 'http://2130706433:8081/'],
      ...['http://0x7f.1:8081/', 'http://[::ffff:127.0.0.1]:8081/', 'http://127.9.9.9:8081/'],
      ...['http://inner.test:8081/', `http://${INTRANET}/`, 'http://intra.test/'],
      ...[`http://[::ffff:${INTRANET}]/`, 'http://169.254.169.254/latest/user-data'],
    ]) {
      location = target;
      for (const fetch of [fetchImage, fetchPackage])
        await assert.rejects(fetch(`http://${EVIL}/go`), isRefused(/refused/), target);
    }
    assert.deepEqual(new Set(hosts()), new Set([EVIL]));
  });

  test('a redirection within the internet, or within a private network, is followed without a login', async () => {
    location = `http://${OTHER}/image`;
    assert.ok((await fetchImage(`http://${EVIL}/go`)).equals(content));
    assert.ok((await fetchPackage(`http://${EVIL}/go`)).equals(content));
    const logins = asked.map(({ login }) => login);
    assert.deepEqual(logins, ['Basic', undefined, 'Basic', undefined]);
  });

  test('a login in a redirection is not sent', async () => {
    location = `http://root:toor@${OTHER}/image`;
    await fetchImage(`http://${EVIL}/go`);
    assert.equal(asked[1]?.login, undefined);
  });

  test('a name that resolves to this host is refused, at the first and at a later attempt', async () => {
    names.set('inner.test', ['127.0.0.1']);
    await assert.rejects(fetchImage('http://inner.test:8081/'), isRefused(/inner\.test.*refused/));
    assert.deepEqual(asked, []);
    for (const fetch of [fetchImage, fetchPackage]) {
      names.set('rebind.test', [EVIL, '127.0.0.1']);
      failures = 1;
      await assert.rejects(fetch('http://rebind.test/image'), isRefused(/rebind\.test.*refused/));
    }
    assert.deepEqual(hosts(), [EVIL, EVIL]);
  });

  test('a redirection is refused when its name resolves to a private address at connection time', async () => {
    names.set('rebind.test', [OTHER, INTRANET]);
    location = 'http://rebind.test/image';
    await fetchImage(`http://${EVIL}/go`);
    await assert.rejects(fetchImage(`http://${EVIL}/go`), isRefused(/rebind\.test.*refused/));
    assert.deepEqual(hosts(), [EVIL, OTHER, EVIL]);
  });

  test('a redirection into a private network is refused, also with an open connection to it', async () => {
    names.set('intra.test', [INTRANET]);
    assert.ok((await fetchImage('http://intra.test/image')).equals(content));
    location = 'http://intra.test/image';
    await assert.rejects(fetchImage(`http://${EVIL}/go`), isRefused(/intra\.test.*refused/));
    assert.deepEqual(hosts(), [INTRANET, EVIL]);
  });

  test('a redirection from https to another port gets no login, and a redirection to http is refused', async () => {
    location = `https://${EVIL}:8443/image`;
    assert.ok((await fetchImage(`https://${EVIL}/image`)).equals(content));
    assert.ok((await fetchPackage(`https://${EVIL}/image`)).equals(content));
    const logins = asked.map(({ login }) => login);
    assert.deepEqual(logins, ['Basic', undefined, 'Basic', undefined]);
    location = `http://${EVIL}/image`;
    for (const fetch of [fetchImage, fetchPackage])
      await assert.rejects(fetch(`https://${EVIL}/image`), isRefused(/from https to http/));
    assert.equal(asked.length, 6);
  });

  test('a mirror whose name resolves to this host after a redirection is refused', async () => {
    names.set('mirror.test', [EVIL, '127.0.0.1']);
    location = 'http://mirror.test/debian/file';
    const get = { method: 'GET', headers: {}, signal } as const;
    const answer = await askMirror('http://mirror.test/debian', { ...get, path: 'go' });
    assert.ok(answer.kind === 'refusal', JSON.stringify(answer));
    assert.match(answer.reason, /mirror\.test \(127\.0\.0\.1\)/);
    assert.deepEqual(hosts(), [EVIL]);
    const plain = await askMirror(`http://${EVIL}/debian`, { ...get, path: 'file' });
    assert.ok(plain.kind === 'answer');
    assert.equal(await text(plain.body), content.toString());
  });
}

/** RFC 1035: one A record with no lifetime, or none. */
function answerQuery(query: Buffer, names: Map<string, string[]>): Buffer {
  const labels: string[] = [];
  let at = 12;
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  const isA = query.readUInt16BE(at + 1) === 1;
  const known = names.get(labels.join('.').toLowerCase());
  const address = isA ? (known && known.length > 1 ? known.shift() : known?.[0]) : undefined;
  const header = Buffer.from(query.subarray(0, 12));
  header.writeUInt16BE(known ? 0x8180 : 0x8183, 2);
  header.fill(0, 6);
  header.writeUInt16BE(address === undefined ? 0 : 1, 6);
  const question = query.subarray(12, at + 5);
  if (address === undefined) return Buffer.concat([header, question]);
  const record = [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, ...address.split('.').map(Number)];
  return Buffer.concat([header, question, Buffer.from(record)]);
}

function makeCertificate(directory: string): { key: string; cert: string } {
  const file = join(directory, 'tls.pem');
  const request = `req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=${EVIL} -addext subjectAltName=IP:${EVIL} -keyout ${file} -out -`;
  const cert = execFileSync('openssl', request.split(' '), { encoding: 'utf8', stdio: 'pipe' });
  return { cert, key: execFileSync('cat', [file], { encoding: 'utf8' }) };
}
