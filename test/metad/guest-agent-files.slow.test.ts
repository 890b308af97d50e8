import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { promisify } from 'node:util';

/** The agent's downloads, with each download program, from a service that is not ours. */

const agent = await readFile(new URL('../../metad/guest/agent.sh', import.meta.url), 'utf8');
const main = agent.lastIndexOf('\nmkdir -p "$home" "$dir"\n');

type Answer = (path: string, response: ServerResponse) => void;

interface Fetched {
  readonly status: string;
  readonly files: Readonly<Record<string, string>>;
  readonly asked: readonly string[];
}

for (const shell of ['dash', 'busybox ash', 'bash'])
  for (const program of ['curl', 'wget', 'busybox']) {
    // Its shell prefers its own wget.
    if (shell === 'busybox ash' && program === 'wget') continue;
    const by = `${shell} with ${program}`;

    test(`${by}: names that differ in a blank at their end are different files`, async (t) => {
      const bodies = { a: 'AAAA', 'a ': 'BB', 'c  d': 'C\n\n', e: '' };
      const { status, files } = await fetchAll(t, { shell, program }, (path, response) => {
        if (path === '/list.bundle') response.end(bundleOf(bodies));
        else response.writeHead(404).end();
      });
      assert.deepEqual({ status, files }, { status: '0', files: bodies });
    });

    test(`${by}: a service without the document has each file asked for`, async (t) => {
      const bodies: Record<string, string> = { '01-a': 'one', 'two files': 'two' };
      const { status, files } = await fetchAll(t, { shell, program }, (path, response) => {
        const body = bodies[decodeURIComponent(path.slice('/list/'.length))];
        if (path === '/list/') response.end(`${Object.keys(bodies).join('\n')}\n`);
        else if (body !== undefined) response.end(body);
        else response.writeHead(404).end();
      });
      assert.deepEqual({ status, files }, { status: '0', files: bodies });
    });

    test(`${by}: a list that answers 404 is empty, and a list that answers 410 is an error`, async (t) => {
      const none = await fetchAll(t, { shell, program }, (_path, response) => {
        response.writeHead(404).end();
      });
      assert.deepEqual(none, { status: '0', files: {}, asked: ['/list.bundle', '/list/'] });
      const gone = await fetchAll(t, { shell, program }, (_path, response) => {
        response.writeHead(410).end();
      });
      assert.notEqual(gone.status, '0');
    });

    test(`${by}: a bundle that is shorter than its index is an error after two requests`, async (t) => {
      const { status, asked } = await fetchAll(t, { shell, program }, (_path, response) => {
        response.end('      27        8 a file\n\nhalf');
      });
      assert.notEqual(status, '0');
      assert.equal(asked.length, 2);
    });

    test(`${by}: a truncated download is an error and leaves no file`, async (t) => {
      const { status, files, asked } = await fetchAll(
        t,
        { shell, program, words: 'fetch list "$home/out/file"' },
        (_path, response) => {
          response.writeHead(200, { 'Content-Length': 1000 });
          response.write('rm -rf /var/tmp/cache\n', () => response.destroy());
        },
      );
      assert.notEqual(status, '0');
      assert.deepEqual(files, {});
      assert.equal(asked.length, 2);
    });
  }

function bundleOf(bodies: Readonly<Record<string, string>>): string {
  const line = (from: number, name: string, body: string): string =>
    `${String(from).padStart(8)} ${String(body.length).padStart(8)} ${name}\n`;
  const all = Object.entries(bodies);
  let from = all.reduce((sum, [name, body]) => sum + line(0, name, body).length, 2);
  const head = all.map(([name, body]) => {
    const told = line(from, name, body);
    from += body.length;
    return told;
  });
  return `${head.join('')}\n${Object.values(bodies).join('')}`;
}

async function fetchAll(
  t: TestContext,
  kind: { readonly shell: string; readonly program: string; readonly words?: string },
  answer: Answer,
): Promise<Fetched> {
  const folder = await mkdtemp(join(tmpdir(), 'gnt-agent-files-'));
  t.after(() => rm(folder, { recursive: true }));
  const asked: string[] = [];
  const server = createServer((request: IncomingMessage, response) => {
    asked.push(request.url ?? '');
    answer(request.url ?? '', response);
  });
  t.after(() => server.close().closeAllConnections());
  await once(server.listen(0, '127.0.0.1'), 'listening');
  // The address of a listening server is an object.
  const { port } = server.address() as AddressInfo;
  for (const name of ['bin', 'out']) await mkdir(join(folder, name));
  if (kind.program === 'busybox') await symlink(await find('busybox'), join(folder, 'bin/wget'));
  const script = [
    agent.slice(0, main),
    `tool=${kind.program} base=http://127.0.0.1:${port} home=${folder} tmp=${folder}/t patience=2`,
    `${kind.words ?? 'fetch_all list "$home/out"'}; echo $? >"$home/status"`,
  ];
  await writeFile(join(folder, 'script'), `${script.join('\n')}\n`);
  const [file = '', ...args] = kind.shell.split(' ');
  const PATH = [join(folder, 'bin'), process.env['PATH']].join(delimiter);
  await promisify(execFile)(file, [...args, join(folder, 'script')], {
    env: { PATH },
    timeout: 60_000,
  });
  const files: Record<string, string> = {};
  for (const name of (await readdir(join(folder, 'out'))).sort())
    files[name] = await readFile(join(folder, 'out', name), 'utf8');
  return { status: (await readFile(join(folder, 'status'), 'utf8')).trim(), files, asked };
}

async function find(name: string): Promise<string> {
  const { stdout } = await promisify(execFile)('/bin/sh', ['-c', `command -v ${name}`]);
  return stdout.trim();
}
