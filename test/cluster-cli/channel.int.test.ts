import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { type DaemonStandIn, startDaemonStandIn } from './support/daemon-stand-in.ts';
import { sampleInstance } from './support/samples.ts';
import { runInProcess } from './support/run-in-process.ts';
import { runProgram } from './support/run-program.ts';

let daemon: DaemonStandIn;
before(async () => {
  daemon = await startDaemonStandIn();
  daemon.instances.push(sampleInstance({ name: 'web1' }));
});
after(() => daemon.close());

const gnt = (args: readonly string[], options: { input?: string | Buffer } = {}) =>
  runInProcess('gnt-instance', args, { root: daemon.root, ...options });

test('connect sends all of stdin, ends its side, and prints what comes after that', async () => {
  const chunks: Buffer[] = [];
  daemon.onRaw = (socket, path) => {
    assert.equal(path, '/v1/instances/web1/connect/22');
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    socket.on('end', () => socket.end(`got ${Buffer.concat(chunks).length}`));
  };
  const input = randomBytes(1_000_000);
  const result = await gnt(['connect', 'web1', '22'], { input });
  assert.deepEqual([result.status, result.stdout, result.stderr], [0, 'got 1000000', '']);
  assert.deepEqual(Buffer.concat(chunks), input);
});

test('connect ends when the guest ends, although stdin is open', async () => {
  daemon.onRaw = (socket) => socket.end('SSH-2.0-test\r\n');
  const result = await runProgram('gnt-instance', ['connect', 'web1', '22'], {
    root: daemon.root,
    holdInput: true,
  });
  assert.deepEqual([result.status, result.stdout], [0, 'SSH-2.0-test\r\n']);
});

test('connect to an instance or a port that is not there is refused with status 2', async () => {
  const none = await gnt(['connect', 'none', '22']);
  assert.equal(none.status, 2);
  assert.match(none.stderr, /^error\[INSTANCE_NOT_FOUND\]: there is no instance 'none'$/m);
  for (const port of ['0', '65536', 'ssh', '-1']) {
    const result = await gnt(['connect', 'web1', '--', port]);
    assert.equal(result.status, 2, port);
    assert.match(result.stderr, /^error\[USAGE\]: '.*' is not a TCP port$/m);
  }
});

test('send passes a file and stdin on in pieces that the queue takes', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'gnt-send-'));
  const bytes = randomBytes(150_000);
  await writeFile(join(folder, 'file'), bytes);
  daemon.sent.length = 0;
  assert.equal((await gnt(['send', 'web1', join(folder, 'file')])).status, 0);
  assert.deepEqual(Buffer.concat(daemon.sent), bytes);
  assert.equal(
    daemon.sent.every((piece) => piece.length <= 65_536),
    true,
  );
  daemon.sent.length = 0;
  await gnt(['send', 'web1'], { input: 'reload\n' });
  assert.equal(Buffer.concat(daemon.sent).toString(), 'reload\n');
  const missing = await gnt(['send', 'web1', join(folder, 'none')]);
  await rm(folder, { recursive: true });
  assert.equal(missing.status, 2);
  assert.match(missing.stderr, /^error\[FILE_UNREADABLE\]: .*none cannot be read/m);
});

test('receive prints the bytes that wait, as they are, and ends', async () => {
  const bytes = Buffer.from([0, 27, 91, 255, 10]);
  daemon.fromGuest.push(bytes);
  const result = await gnt(['receive', 'web1']);
  assert.equal(result.status, 0);
  assert.equal(result.stdout, bytes.toString('utf8'));
  assert.equal((await gnt(['receive', 'web1'])).stdout, '');
});

test('receive does not let a guest control the terminal', async () => {
  daemon.fromGuest.push(Buffer.from('a\u001b]0;owned\u0007b\u001b[2Jc\n'));
  const result = await runProgram('gnt-instance', ['receive', 'web1'], {
    root: daemon.root,
    columns: 80,
  });
  assert.equal(result.stdout.includes('\u001b'), false);
});

test('receive --follow goes on until it is interrupted', async () => {
  daemon.fromGuest.push(Buffer.from('one\n'), Buffer.from('two\n'));
  const result = await runProgram('gnt-instance', ['receive', '--follow', 'web1'], {
    root: daemon.root,
    onOutput: (text, child) => {
      if (text === 'one\ntwo\n') child.kill('SIGINT');
    },
  });
  assert.deepEqual([result.status, result.stdout], [130, 'one\ntwo\n']);
});

test('metadata prints what the guest would get, and says when there is nothing', async () => {
  assert.equal((await gnt(['metadata', 'web1'])).stdout, 'ganeti/\nlatest/');
  const leaf = await gnt(['metadata', '--json', 'web1', '/latest/meta-data/mac']);
  assert.deepEqual(JSON.parse(leaf.stdout), {
    path: '/latest/meta-data/mac',
    contentType: 'text/plain; charset=utf-8',
    encoding: 'utf8',
    content: 'content of latest/meta-data/mac',
  });
  const part = await gnt(['metadata', 'web1', '/ganeti/latest/os/parameters.json?partial=true']);
  assert.equal(part.stdout, 'content of ganeti/latest/os/parameters.json?partial=1');
  const odd = await gnt(['metadata', 'web1', '/a?b=c']);
  assert.equal(odd.stdout, 'content of a%3Fb%3Dc');
  const missing = await gnt(['metadata', 'web1', 'missing']);
  assert.equal(missing.status, 2);
  assert.match(missing.stderr, /^error\[NOT_FOUND\]: web1 has no content at \/missing$/m);
  const lost = await gnt(['metadata', 'web1', 'lost']);
  assert.equal(lost.status, 1);
  assert.match(
    lost.stderr,
    /^error\[SECRET_LOST\]: the guest gets 410 for \/lost: the secret is gone$/m,
  );
});

test('log prints the install log, as lines with --json', async () => {
  daemon.installLog = 'one\ntwo\n';
  assert.equal((await gnt(['log', 'web1'])).stdout, 'one\ntwo\n');
  daemon.installLog = 'a\u001b[2Jb\u009bc é\n';
  assert.equal((await gnt(['log', 'web1'])).stdout, 'ab é\n');
  daemon.installLog = 'one\ntwo\n';
  const json = await gnt(['log', '--json', 'web1']);
  assert.deepEqual(JSON.parse(json.stdout), { instance: 'web1', lines: ['one', 'two'] });
  assert.equal((await gnt(['log', '--json', '--follow', 'web1'])).status, 2);
});

test('console passes keys on and leaves at the escape key', async () => {
  let typed = '';
  daemon.onRaw = (socket, path) => {
    assert.equal(path, '/v1/instances/web1/console');
    socket.write('login: ');
    socket.on('data', (chunk: Buffer) => {
      typed += chunk.toString();
    });
  };
  let isTyped = false;
  const result = await runProgram('gnt-instance', ['console', 'web1'], {
    root: daemon.root,
    columns: 80,
    holdInput: true,
    onOutput: (text, child) => {
      if (!text.includes('login: ') || isTyped) return;
      isTyped = true;
      child.stdin?.write('root\u0003\u001drest');
    },
  });
  assert.equal(result.status, 0);
  assert.equal(typed, 'root\u0003');
  assert.match(result.stdout, /Ctrl-\] disconnects/);
});

test('console without a terminal prints what comes and ends with the machine', async () => {
  daemon.onRaw = (socket) => socket.end('booting\n');
  const result = await gnt(['console', 'web1']);
  assert.deepEqual([result.status, result.stdout], [0, 'booting\n']);
});

const channel = (args: readonly string[], input = '') =>
  runInProcess('gnt-channel', args, { root: daemon.root, input });

test('gnt-channel read waits until the channel is open and something came', async () => {
  daemon.closedFor = 2;
  setTimeout(() => daemon.fromGuest.push(Buffer.from('ready\n')), 500);
  const result = await channel(['read', 'web1']);
  assert.deepEqual([result.status, result.stdout, result.stderr], [0, 'ready\n', '']);
});

test('gnt-channel read ends with CHANNEL_CLOSED when nothing comes in time', async () => {
  const result = await channel(['read', '--wait=1', 'web1']);
  assert.equal(result.status, 1);
  assert.equal(result.stderr, 'error[CHANNEL_CLOSED]: no bytes from web1 within 1 s\n');
});

test('gnt-channel write passes stdin on once the channel is open', async () => {
  daemon.closedFor = 1;
  daemon.sent.length = 0;
  assert.equal((await channel(['write', 'web1'], 'go\n')).status, 0);
  assert.equal(Buffer.concat(daemon.sent).toString(), 'go\n');
});
