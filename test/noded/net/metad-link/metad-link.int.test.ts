import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { chmod, mkdtemp, readFile, readlink, rm, stat, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer, text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { after, before, test } from 'node:test';
import { systemClock } from '#shared/clock/clock.ts';
import type { MetadEvent } from '#shared/contract/metad-control.ts';
import type { InstanceView } from '#shared/contract/view.ts';
import { AppError, isAppError } from '#shared/errors/app-error.ts';
import { type Logger, silentLogger } from '#shared/log/log.ts';
import { createRootPaths, type RootPaths } from '#shared/paths/root-paths.ts';
import type { ContentProvider } from '../../../../noded/net/metad-link/content-server.ts';
import { isAlive, readProcessIdentity } from '../../../../noded/host/process-identity.ts';
import { createMetadLink, type MetadLink } from '../../../../noded/net/metad-link/metad-link.ts';

const program = join(import.meta.dirname, 'control-program.ts');
const launcher = {
  command: process.execPath,
  args: ['--disable-warning=ExperimentalWarning', program],
};
const installing = randomUUID();
let root = '';
let paths: RootPaths;
let image = '';
const warnings: { event: string; fields: unknown }[] = [];
const logger: Logger = {
  ...silentLogger,
  warn: (event, fields) => void warnings.push({ event, fields }),
};

before(async () => {
  // As private as mktemp makes it: metad's user cannot go here by itself.
  root = await mkdtemp(join(tmpdir(), 'gnt-link-'));
  paths = createRootPaths(root);
  execFileSync('ip', ['netns', 'add', paths.networkNamespace]);
  image = join(root, 'image');
  await writeFile(image, Buffer.from('0123456789'));
  await chmod(image, 0o600);
});
after(async () => {
  execFileSync('ip', ['netns', 'delete', paths.networkNamespace]);
  await rm(root, { recursive: true });
});

const content: ContentProvider = {
  openRelay: async () => ({ kind: 'refusal', status: 404, reason: 'no relay' }),
  findBootTree: async () => undefined,
  openMirror: async () => undefined,
  openImage: async (uuid) => (uuid === installing ? { path: image, sizeBytes: 10 } : undefined),
  issueToken: async () => ({ kind: 'refused', status: 403, reason: 'no identity' }),
  findService: async () => undefined,
  openPackage: async (uuid) => {
    if (uuid !== installing) throw new AppError('PACKAGE_DOWNLOAD', 'the mirror said 503');
    return { stream: Readable.from([Buffer.from('pack'), Buffer.from('age')]), sizeBytes: 7 };
  },
};

function newLink(args: readonly string[] = [], adoptTimeoutMs?: number): MetadLink {
  return createMetadLink({
    adoptTimeoutMs,
    paths,
    launcher: { ...launcher, args: [...launcher.args, ...args] },
    logger,
    clock: systemClock,
  });
}

/** Speaks to the program past the link. */
function poke(
  method: string,
  path: string,
  options: { body?: string; headers?: Record<string, string> } = {},
): Promise<{ status: number; headers: NodeJS.Dict<string | string[]>; body: string }> {
  return new Promise((resolve, reject) => {
    const { body, headers } = options;
    request(
      {
        socketPath: paths.metadControlSocket,
        agent: false,
        method,
        path,
        ...(headers && { headers }),
      },
      (answer) => {
        text(answer).then(
          (read) =>
            resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body: read }),
          reject,
        );
      },
    )
      .on('error', reject)
      .end(body);
  });
}

async function withLink(body: (link: MetadLink) => Promise<void>): Promise<void> {
  const link = newLink();
  await link.start(content);
  try {
    await body(link);
  } finally {
    await link.stop();
  }
}

const view = (uuid: string, name = 'web1.example.com') => ({ uuid, name }) as InstanceView;

test('metad runs as its user, without capabilities, in the namespace, with an empty environment', () =>
  withLink(async (link) => {
    const status = await readFile(`/proc/${link.pid}/status`, 'utf8');
    const field = (name: string): string =>
      new RegExp(`^${name}:[ \\t]*(.*)$`, 'm').exec(status)?.[1] ?? '';
    assert.notEqual(field('Uid').split(/\s+/)[0], '0');
    for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb']) {
      assert.match(field(set), /^0+$/, set);
    }
    assert.equal(field('NoNewPrivs'), '1');
    assert.equal(field('Groups').trim(), '');
    const pids = execFileSync('ip', ['netns', 'pids', paths.networkNamespace], {
      encoding: 'utf8',
    });
    assert.deepEqual(pids.trim().split('\n'), [String(link.pid)]);
    const environment = await readFile(`/proc/${link.pid}/environ`, 'utf8');
    assert.deepEqual(
      environment
        .split('\0')
        .map((entry) => entry.split('=')[0])
        .filter((name) => name && !['PWD', 'OLDPWD', '_', 'SHLVL'].includes(name)),
      ['PATH'],
    );
    assert.equal(await readlink(`/proc/${link.pid}/fd/0`), '/dev/null');
    const control = await stat(paths.metadDir);
    assert.equal(control.mode & 0o777, 0o750);
  }));

test('the content socket has mode 0660 and owner root, and serves images and packages of known instances', () =>
  withLink(async () => {
    const socket = await stat(paths.contentSocket);
    assert.equal(socket.mode & 0o777, 0o660);
    assert.equal(socket.uid, 0);
    assert.notEqual(socket.gid, 0);
    const fetchContent = (path: string, headers = {}) =>
      poke('GET', `/content?path=${encodeURIComponent(path)}`, { headers });
    const whole = await fetchContent(`/v1/instances/${installing}/image`);
    assert.deepEqual([whole.status, whole.body], [200, '0123456789']);
    const part = await fetchContent(`/v1/instances/${installing}/image`, { range: 'bytes=3-5' });
    assert.deepEqual(
      [part.status, part.body, part.headers['content-range']],
      [206, '345', 'bytes 3-5/10'],
    );
    const beyond = await fetchContent(`/v1/instances/${installing}/image`, { range: 'bytes=10-' });
    assert.deepEqual([beyond.status, beyond.headers['content-range']], [416, 'bytes */10']);
    const packaged = await fetchContent(`/v1/instances/${installing}/package`);
    assert.deepEqual([packaged.status, packaged.body], [200, 'package']);
    const other = randomUUID();
    assert.equal((await fetchContent(`/v1/instances/${other}/image`)).status, 404);
    const failing = await fetchContent(`/v1/instances/${other}/package`);
    assert.deepEqual([failing.status, failing.body], [502, 'the mirror said 503\n']);
    assert.equal((await fetchContent('/v1/instances/../../etc/passwd')).status, 404);
  }));

test("each call returns metad's answer or its error", () =>
  withLink(async (link) => {
    const uuid = randomUUID();
    await assert.rejects(link.writeQueue(uuid, Buffer.from('x')), (error) =>
      isAppError(error, 'INSTANCE_NOT_FOUND'),
    );
    await link.putView(view(uuid));
    await assert.rejects(
      link.putView(view(uuid, 'refuse-me')),
      (error) => isAppError(error, 'METAD_REFUSED') && error.message.includes('name: refused'),
    );
    await link.writeQueue(uuid, Buffer.from([0, 255]));
    await link.writeQueue(uuid, Buffer.from('two'));
    const isFull = (error: unknown): boolean => isAppError(error, 'CHANNEL_FULL');
    await assert.rejects(link.writeQueue(uuid, Buffer.from('three')), isFull);
    await assert.rejects(link.writeQueue(uuid, Buffer.alloc(65537)), isFull);
    assert.deepEqual(await link.readQueue(uuid, { offset: 0, waitS: 1 }), {
      bytes: Buffer.from([0, 255]),
      nextOffset: 2,
    });
    await link.readQueue(uuid);
    assert.equal(await link.readQueue(uuid), null);
    assert.deepEqual(await link.tree(uuid, '/a b/c'), {
      status: 200,
      contentType: 'text/x-tree',
      body: Buffer.from('leaf'),
    });
    assert.equal(await link.metrics(), '# metrics\n');
    assert.equal((await link.status()).pid, link.pid);
    await link.deleteView(uuid);
    await link.deleteView(uuid);
  }));

test('a connection to the guest is a raw stream, or an error with the reason', () =>
  withLink(async (link) => {
    const stream = await link.connect(randomUUID(), 22);
    const read = buffer(stream);
    stream.end(Buffer.from([0, 1, 255]));
    assert.deepEqual(await read, Buffer.from([...Buffer.from('SSH-'), 0, 1, 255]));
    await assert.rejects(
      link.connect(randomUUID(), 23),
      (error) => isAppError(error, 'GUEST_UNREACHABLE') && error.message === 'connection refused',
    );
    await assert.rejects(link.connect(randomUUID(), 404), (error) =>
      isAppError(error, 'INSTANCE_NOT_FOUND'),
    );
  }));

test('events continue after a cut connection and a restart of metad, and malformed events are dropped', () =>
  withLink(async (link) => {
    const line = (sequence: number, bytes: number): string =>
      `${JSON.stringify({ sequence, instance: installing, event: { type: 'written', bytes } })}\n`;
    const controller = new AbortController();
    const seen: MetadEvent[] = [];
    const waiters: (() => void)[] = [];
    const reading = (async () => {
      for await (const event of link.events({ signal: controller.signal })) {
        seen.push(event);
        waiters.splice(0).forEach((wake) => wake());
      }
    })();
    const until = async (count: number): Promise<void> => {
      while (seen.length < count) await new Promise<void>((wake) => waiters.push(wake));
    };
    try {
      await poke('POST', '/emit', { body: line(1, 10) });
      await until(1);
      await poke('POST', '/cut').catch(() => undefined);
      const endless = `"${'sesame'.repeat(500_000)}"\n`;
      const hostile = `{"sequence":2,"instance":"x","event":{"type":"written"}}\nnot json sesame\n${endless}`;
      await poke('POST', '/emit', { body: line(2, 20) + hostile + line(3, 30) });
      await until(3);
      const restarted = new Promise<void>((resolve) => link.onRestarted(resolve));
      process.kill(link.pid ?? 0, 'SIGKILL');
      await restarted;
      await poke('POST', '/emit', { body: line(1, 40) });
      await until(4);
    } finally {
      controller.abort();
      await reading;
    }
    assert.deepEqual(
      seen.map(({ event }) => event.type === 'written' && event.bytes),
      [10, 20, 30, 40],
    );
    const dropped = warnings.filter(({ event }) => event === 'metad.bad-event');
    assert.equal(dropped.length >= 3, true);
    assert.ok(!JSON.stringify(dropped).includes('sesame'), "a guest's words are in the log");
  }));

test('a killed metad is restarted and counted, and calls fail meanwhile', () =>
  withLink(async (link) => {
    const first = link.pid;
    assert.ok(first);
    const restarted = new Promise<void>((resolve) => link.onRestarted(resolve));
    process.kill(first, 'SIGKILL');
    while (link.pid === first) await delay(5);
    await assert.rejects(link.status(), (error) => isAppError(error, 'METAD_UNAVAILABLE'));
    await restarted;
    assert.equal(link.restarts, 1);
    assert.notEqual(link.pid, first);
    assert.equal((await link.status()).pid, link.pid);
  }));

test('the next noded adopts a running metad, and restarts it when it is killed', async () => {
  const first = newLink();
  await first.start(content);
  const { pid } = first;
  assert.equal(first.adopted, false);
  await first.detach();
  const second = newLink();
  await second.start(content);
  try {
    assert.deepEqual([second.adopted, second.pid, second.restarts], [true, pid, 0]);
    const answer = await poke('GET', `/content?path=/v1/instances/${installing}/image`);
    assert.equal(answer.body, '0123456789');
    const restarted = new Promise<void>((resolve) => second.onRestarted(resolve));
    process.kill(pid ?? 0, 'SIGKILL');
    await restarted;
    assert.notEqual(second.pid, pid);
  } finally {
    await second.stop();
  }
  assert.equal(second.pid, null);
});

/** Processes in the channel's namespace; metad's own are the only ones there. */
function pidsInNamespace(): readonly number[] {
  const pids = execFileSync('ip', ['netns', 'pids', paths.networkNamespace], { encoding: 'utf8' });
  return pids.trim().split('\n').map(Number);
}

test('a metad that does not answer is ended and replaced', async () => {
  const first = newLink();
  await first.start(content);
  const pid = first.pid ?? 0;
  await first.detach();
  process.kill(pid, 'SIGSTOP');
  const second = newLink([], 300);
  await second.start(content);
  try {
    assert.equal(second.adopted, false);
    assert.notEqual(second.pid, pid);
    assert.deepEqual(pidsInNamespace(), [second.pid]);
  } finally {
    await second.stop();
  }
});

test('a metad in a deleted namespace is replaced', async () => {
  const first = newLink();
  await first.start(content);
  const { pid } = first;
  await first.detach();
  execFileSync('ip', ['netns', 'delete', paths.networkNamespace]);
  execFileSync('ip', ['netns', 'add', paths.networkNamespace]);
  await withLink(async (second) => {
    assert.equal(second.adopted, false);
    assert.notEqual(second.pid, pid);
    const pids = execFileSync('ip', ['netns', 'pids', paths.networkNamespace], {
      encoding: 'utf8',
    });
    assert.deepEqual(pids.trim().split('\n'), [String(second.pid)]);
  });
});

test('a metad that cannot start is an error with its exit status and output', async () => {
  const link = newLink(['--fail']);
  await assert.rejects(
    link.start(content),
    (error) =>
      isAppError(error, 'METAD_UNAVAILABLE') &&
      error.message.includes('status 3') &&
      error.message.includes('no coffee'),
  );
  await link.stop();
});

test('stop leaves no process and no socket', async () => {
  const link = newLink();
  await link.start(content);
  const identity = readProcessIdentity(link.pid ?? 0) ?? assert.fail('it does not run');
  await link.stop();
  // Its parent, this process, may not have taken note of its end yet.
  assert.equal(isAlive(identity), false);
  await assert.rejects(stat(paths.metadControlSocket), { code: 'ENOENT' });
  await assert.rejects(stat(paths.contentSocket), { code: 'ENOENT' });
});
