import assert from 'node:assert/strict';
import { mkdtemp, readdir, readlink, rm, truncate, writeFile } from 'node:fs/promises';
import { type IncomingMessage, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { systemClock } from '#shared/clock/clock.ts';
import { silentLogger } from '#shared/log/log.ts';
import {
  type ContentServer,
  startContentServer,
} from '../../../../noded/net/metad-link/content-server.ts';

const GREEDY = '6aa7b544-1f3d-49e9-b2b7-73836039b5cf';
const MODEST = '6aa7b544-1f3d-49e9-b2b7-73836039b5d0';
/** More than the buffers of an unread socket hold. */
const IMAGE_BYTES = 64 * 1024 * 1024;

let directory: string;
let socketPath: string;
let server: ContentServer;
const warnings: string[] = [];

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'gnt-content-'));
  socketPath = join(directory, 'content.sock');
  const path = join(directory, 'image');
  await writeFile(path, '');
  await truncate(path, IMAGE_BYTES);
  server = await startContentServer({
    socketPath,
    gid: process.getgid?.() ?? 0,
    content: {
      openImage: async () => Promise.resolve({ path, sizeBytes: IMAGE_BYTES }),
      openRelay: async () => ({ kind: 'refusal', status: 404, reason: 'no relay' }),
      openPackage: async () => Promise.reject(new Error('not asked for')),
      findBootTree: async () => undefined,
      openMirror: async () => Promise.resolve(undefined),
      issueToken: async () => ({ kind: 'refused', status: 403, reason: 'no identity' }),
      findService: async () => Promise.resolve(undefined),
    },
    logger: { ...silentLogger, warn: (event) => void warnings.push(event) },
    clock: systemClock,
  });
});
after(async () => {
  await server.close();
  await rm(directory, { recursive: true });
});

async function ask(uuid: string, kind = 'image'): Promise<IncomingMessage> {
  return await new Promise((resolve, reject) => {
    const path = `/v1/instances/${uuid}/${kind}`;
    const outgoing = request({ socketPath, path, agent: false }, resolve);
    outgoing.on('error', reject);
    outgoing.end();
  });
}

/** Descriptors of this process, which is the server's too, that read the image. */
async function openImages(): Promise<number> {
  const links = await Promise.all(
    (await readdir('/proc/self/fd')).map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => '')),
  );
  return links.filter((link) => link === join(directory, 'image')).length;
}

test('an instance has at most four open images, which are closed with their readers', async () => {
  const answers = await Promise.all(Array.from({ length: 50 }, async () => await ask(GREEDY)));
  const statuses = answers.map(({ statusCode }) => statusCode);
  assert.equal(statuses.filter((status) => status === 200).length, 4, statuses.join());
  assert.equal(statuses.filter((status) => status === 503).length, 46, statuses.join());
  assert.equal(await openImages(), 4);
  const modest = await ask(MODEST);
  assert.equal(modest.statusCode, 200, 'another instance has its own');
  for (const answer of [...answers, modest]) answer.destroy();
  while ((await openImages()) > 0) await sleep(10);
  const again = await ask(GREEDY);
  assert.equal(again.statusCode, 200);
  again.destroy();
});

test('at most 40 of 100 failures that an instance causes are logged', async () => {
  for (let count = 0; count < 100; count++) {
    const answer = await ask(GREEDY, 'package');
    assert.equal(answer.statusCode, 502);
    answer.resume();
  }
  const ofGreedy = warnings.length;
  assert.ok(ofGreedy >= 20 && ofGreedy < 40, `${ofGreedy} lines`);
  (await ask(MODEST, 'package')).resume();
  assert.equal(warnings.length, ofGreedy + 1, 'another instance has its own');
});
