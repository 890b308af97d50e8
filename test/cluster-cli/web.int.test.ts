import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { test, type TestContext } from 'node:test';
import { createRootPaths } from '#shared/paths/root-paths.ts';
import { sampleNode } from './support/samples.ts';
import { runInProcess } from './support/run-in-process.ts';
import { createApiLab } from '../noded/support/api-lab.ts';
import { askWeb } from '../noded/api/web/web-lab.ts';

const MAIN = join(import.meta.dirname, '../../cluster-cli/main.ts');

test('gnt-cluster web prints an address, the next one after its use, and ends by Ctrl-C', async (t) => {
  const { root } = await createApiLab(t);
  const command = spawn(process.execPath, [MAIN, 'web'], {
    env: { ...process.env, GNT_ROOT: root, GNT_PROGRAM: 'gnt-cluster' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  t.after(() => command.kill('SIGKILL'));
  let notes = '';
  command.stderr.setEncoding('utf8').on('data', (text: string) => (notes += text));
  const lines = createInterface(command.stdout)[Symbol.asyncIterator]();
  const next = async (): Promise<string> => String((await lines.next()).value);
  const first = await next();
  assert.match(first, /^http:\/\/gnt-[\da-f]{16}\.localhost:\d+\/\?token=[\w-]{43}$/);
  assert.equal((await askWeb(first)).status, 303);
  const second = await next();
  assert.notEqual(second, first);
  assert.match(notes, new RegExp(`ssh -L ${new URL(first).port}:127\\.0\\.0\\.1:`));
  command.kill('SIGINT');
  const [status] = (await once(command, 'exit')) as [number];
  assert.equal(status, 0, notes);
  await assert.rejects(askWeb(second), { code: 'ECONNREFUSED' });
});

/** Starts a daemon on the socket of a new root. Its page ends at once, then serves one address. */
async function startRestarted(t: TestContext, url: string) {
  const root = await mkdtemp(join(tmpdir(), 'gnt-web-'));
  t.after(() => rm(root, { recursive: true }));
  const { nodedSocket } = createRootPaths(root);
  await mkdir(dirname(nodedSocket), { recursive: true });
  const asked: string[] = [];
  const daemon = createServer((request, response) => {
    if (request.url !== '/v1/web') return response.end(JSON.stringify(sampleNode()));
    return void text(request).then((body) => {
      asked.push(body);
      if (asked.length === 1) response.end();
      else response.write(`${JSON.stringify({ url })}\n`);
    });
  }).listen(nodedSocket);
  t.after(() => {
    daemon.close();
    daemon.closeAllConnections();
  });
  return { root, asked };
}

test('the note of a page on port 80 names this port, which the address omits, and the page returns there', async (t) => {
  const { root, asked } = await startRestarted(t, 'http://gnt-1.localhost/?token=1');
  let isLeft = false;
  const { status, stderr } = await runInProcess('gnt-cluster', ['web', '--port', '80'], {
    root,
    onOutput: (output, interrupt) => {
      if (output.includes('token=') && !isLeft) interrupt();
      isLeft = output.includes('token=');
    },
  });
  assert.equal(status, 0, stderr);
  assert.match(stderr, /ssh -L 80:127\.0\.0\.1:80 /);
  assert.deepEqual(asked, ['{"port":80}', '{"port":80}'], 'after a restart, too');
});

test('a port that does not exist is refused with the name of the option', async (t) => {
  const { root } = await createApiLab(t);
  const { status, stderr } = await runInProcess('gnt-cluster', ['web', '--port', '65536'], {
    root,
  });
  assert.equal(status, 2);
  assert.match(stderr, /--port <port>.* Write a whole number from 0 to 65535/);
});
