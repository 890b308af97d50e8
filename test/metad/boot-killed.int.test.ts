import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseRange } from '#shared/http/parse-range.ts';
import { listenOnLoopback } from '../lab/listen-on-loopback.ts';
import { bootOf } from '../lab/netboot-lab.ts';
import { ChannelLab } from './support/channel-lab.ts';
import { askFromGuest } from './support/guest-http.ts';
import { exampleView } from './support/view-fixture.ts';

const SIZE = 40 * 1024 * 1024;
const PROGRAM = join(import.meta.dirname, 'support/content-program.ts');
const contents = randomBytes(SIZE);

function answer({ headers }: IncomingMessage, response: ServerResponse): void {
  const range = parseRange(headers.range, SIZE);
  if (range === 'unsatisfiable') return void response.writeHead(416).end();
  const [first, last] = range ?? [0, SIZE - 1];
  response.writeHead(range ? 206 : 200, {
    ...{ etag: '"one"', 'accept-ranges': 'bytes', 'content-length': last - first + 1 },
    ...(range && { 'content-range': `bytes ${first}-${last}/${SIZE}` }),
  });
  response.end(contents.subarray(first, last + 1));
}

test(
  'a 40 MB mirror download that a killed node daemon cuts is completed by a resuming client',
  { timeout: 120_000 },
  async (t) => {
    const directory = await mkdtemp(join(tmpdir(), 'gnt-killed-'));
    t.after(() => rm(directory, { recursive: true, force: true }));
    const mirror = createServer(answer);
    const url = `http://127.0.0.1:${await listenOnLoopback(mirror)}/debian`;
    t.after(() => mirror.close().closeAllConnections());
    const lab = await ChannelLab.create();
    t.after(() => lab[Symbol.asyncDispose]());
    const running = new Set<ChildProcess>();
    t.after(() => running.forEach((child) => child.kill('SIGKILL')));
    const startContent = async (): Promise<ChildProcess> => {
      const child = spawn(process.execPath, [PROGRAM, lab.contentSocket, url], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      running.add(child);
      await once(child.stdout, 'data');
      return child;
    };
    const view = exampleView();
    const guest = await lab.addGuest(view.channel);
    assert.equal((await lab.put({ ...view, boot: bootOf(view, '#!ipxe\n') })).status, 204);
    const root = '/ganeti/latest/boot';
    const file = join(directory, 'initrd');
    /** Downloads like a guest's own client, and resumes a partial file. */
    const load = (...more: readonly string[]): Promise<number> =>
      new Promise((resolve) => {
        const asked = ['-sS', '-f', '-C', '-', '-o', file, ...more];
        const from = `http://169.254.169.254${root}/machines/${view.uuid}/boot/initrd`;
        const command = ['netns', 'exec', guest.namespace, 'curl', ...asked, from];
        const child = execFile('ip', command, () => resolve(child.exitCode ?? -1));
      });

    const daemon = await startContent();
    const cut = load('--limit-rate', '8M');
    const sizeOf = async (): Promise<number> => (await stat(file).catch(() => null))?.size ?? 0;
    while ((await sizeOf()) < SIZE / 8) await sleep(20);
    daemon.kill('SIGKILL');
    // curl's status for an incomplete transfer.
    assert.equal(await cut, 18);
    const part = await sizeOf();
    assert.ok(part >= SIZE / 8 && part < SIZE, `${part} bytes`);
    const away = await askFromGuest(
      guest.namespace,
      `${root}/machines/${view.uuid}/boot/initrd`,
      {},
    );
    assert.deepEqual([away.status, away.headers['retry-after']], [503, '1']);
    const script = await askFromGuest(guest.namespace, `${root}/${view.channel.mac}.ipxe`, {});
    assert.match(script.body.toString(), /^#!ipxe/, 'metad has that by itself');

    await startContent();
    assert.equal(await load(), 0);
    const digest = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');
    assert.equal(digest(await readFile(file)), digest(contents));
  },
);
