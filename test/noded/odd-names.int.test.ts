import assert from 'node:assert/strict';
import { cp, mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { jobRecord } from '#shared/contract/job.ts';
import type { OpcodeInput } from '#shared/contract/opcode.ts';
import { createLab, type Lab } from '../../scripts/demo/lab.ts';
import { askSocket, type SocketAnswer } from '../lab/ask-socket.ts';

/** No text that an operator or a program sends to a real node is answered as a bug of the node. */
const ODD: readonly string[] = [
  ...['', ' ', '+', '+v1', 'flavoured+', '..', '/', '--force', '%', '\n', 'constructor', '💥'],
  ...['__proto__', 'null', '€'.repeat(200), 'a'.repeat(300)],
];
const NAME = 'web1.example.com';

let lab: Lab;
before(async () => {
  lab = await createLab('gnt-odd');
  const [osDir = ''] = lab.paths.osSearchPath;
  await mkdir(osDir, { recursive: true });
  for (const name of ['flavoured', 'hello'])
    await cp(join(import.meta.dirname, `../../fixtures/os/${name}`), join(osDir, name), {
      recursive: true,
    });
  await lab.startNode();
  const created = await submit({
    ...{ opcode: 'INSTANCE_CREATE', name: NAME, osType: 'hello', install: false, start: false },
    ...{ disks: [{ sizeBytes: 1 << 20 }], osParameters: {} },
  });
  assert.equal(created, null, JSON.stringify(created));
});
after(async () => {
  await lab.stopNode();
  const leftovers = await lab.findLeftovers();
  await lab.dispose();
  assert.deepEqual(leftovers, []);
});

const ask = (path: string, body?: unknown): Promise<SocketAnswer> =>
  askSocket(lab.paths.nodedSocket, path, body === undefined ? {} : { method: 'POST', body });

/** @returns the error of the job, null when it succeeded */
async function submit(opcode: unknown): Promise<unknown> {
  const { status, body } = await ask('/v1/jobs', opcode);
  if (status !== 202) return JSON.parse(body);
  const { id } = JSON.parse(body) as { id: number };
  await ask(`/v1/jobs/${id}/events`);
  return jobRecord.parse(JSON.parse((await ask(`/v1/jobs/${id}`)).body)).error;
}

/** Opcodes of which each text is replaced by odd names. */
const judged: readonly OpcodeInput[] = [
  {
    ...{ opcode: 'INSTANCE_CREATE', name: 'web2', osType: 'hello', osImage: '/x', tags: ['a'] },
    ...{ osParameters: { a: 'b' }, osParametersSecret: { c: 'd' }, metadata: { role: 'db' } },
    ...{ nics: [{ mode: 'bridged', link: 'br0', name: 'n' }], disks: [{ sizeBytes: 512 }] },
    ...{ hvparams: { kernel_path: '/x' }, sshKeys: ['x'], profiles: ['p'], node: 'node1' },
    ...{ personalizationPackage: 'http://x/a.tgz', personalizationUser: 'u', importFrom: 'x' },
    ...{ installParameters: { cdrom_image_path: '/x' }, appliance: 'a', bootEnv: 'b' },
  },
  { opcode: 'INSTANCE_CREATE', name: 'web2', osType: 'flavoured', install: false },
  { opcode: 'INSTANCE_CREATE', name: 'web2', osType: 'flavoured', forceVariant: true },
  { opcode: 'INSTANCE_REINSTALL', name: NAME, osType: 'hello', osImage: '/x', profiles: ['p'] },
  { opcode: 'INSTANCE_REINSTALL', name: NAME, osType: 'hello' },
  {
    ...{ opcode: 'INSTANCE_SET_PARAMS', name: NAME, osType: 'hello' },
    ...{ osParameters: { a: 'b' }, metadata: { role: 'db' }, addTags: ['a'], removeTags: ['b'] },
  },
  { opcode: 'INSTANCE_SET_PARAMS', name: NAME, osType: 'flavoured', forceVariant: true },
  { opcode: 'INSTANCE_STARTUP', name: NAME, osParametersSecret: { a: 'b' } },
  { opcode: 'INSTANCE_RENAME', name: NAME, newName: 'web3' },
  { opcode: 'INSTANCE_COPY', name: NAME, newName: 'web3' },
  { opcode: 'INSTANCE_MOVE', name: NAME, node: 'node2' },
  { opcode: 'INSTANCE_MIGRATE', name: NAME, node: 'node2' },
  { opcode: 'INSTANCE_FAILOVER', name: NAME, node: 'node2' },
  { opcode: 'INSTANCE_RUN_SCRIPT', name: NAME, script: 's', inputs: { A: 'b' } },
  { opcode: 'INSTANCE_SNAPSHOT', name: NAME, snapshot: 's' },
  { opcode: 'INSTANCE_RESTORE', name: NAME, snapshot: 's' },
  { opcode: 'INSTANCE_REMOVE_SNAPSHOT', name: NAME, snapshot: 's' },
  { opcode: 'INSTANCE_ADOPT', name: NAME },
  { opcode: 'BACKUP_EXPORT', name: NAME },
  { opcode: 'BACKUP_REMOVE', name: NAME },
  { opcode: 'NODE_SET_PARAMS', name: 'node1', drained: false },
  {
    opcode: 'NETWORK_CONNECT',
    name: 'n',
    nodes: ['a'],
    connection: { mode: 'bridged', link: 'x' },
  },
  { opcode: 'NETWORK_DISCONNECT', name: 'n', nodes: ['a'] },
  { opcode: 'NETWORK_REMOVE', name: 'n' },
  { opcode: 'PROFILE_REMOVE', name: 'p' },
  { opcode: 'BOOTENV_REMOVE', object: { kind: 'template', name: 't' } },
  { opcode: 'BOOTENV_UPLOAD_ISO', bootEnv: 'b', source: '/x' },
  { opcode: 'BOOTENV_DESTROY_ISO', isoFile: 'x' },
];
/** These are done: their records have to be read again. */
const done: readonly OpcodeInput[] = [
  { opcode: 'OS_SET_PARAMS', name: 'hello', hidden: true, osParameters: { a: 'b' } },
  { opcode: 'PROFILE_SET_PARAMS', name: 'p', osParameters: { a: 'b' } },
  { opcode: 'NETWORK_ADD', name: 'n', network: '192.0.2.0/24', tags: ['a'] },
  {
    ...{ opcode: 'CLUSTER_SET_PARAMS', defaultOs: 'hello', addTags: ['a'], remoteHosts: ['x'] },
    ...{ packageMirrors: { a: 'http://x/' }, exposeServices: {}, remoteFolders: ['/x'] },
  },
];

/** The input once for each text in it, keys included, with that text replaced. */
function* withEachText(input: unknown, odd: string): Generator<unknown> {
  if (typeof input === 'string') yield odd;
  else if (Array.isArray(input))
    for (const [at, item] of input.entries())
      for (const changed of withEachText(item, odd)) yield input.with(at, changed);
  else if (typeof input === 'object' && input !== null)
    for (const [key, value] of Object.entries(input)) {
      if (key === 'opcode') continue;
      const others = Object.entries(input).filter(([name]) => name !== key);
      yield Object.fromEntries([...others, [odd, value]]);
      for (const changed of withEachText(value, odd))
        yield Object.fromEntries([...others, [key, changed]]);
    }
}

const isBug = (told: unknown): boolean => JSON.stringify(told).includes('INTERNAL');

async function inParallel<T>(items: Iterable<T>, act: (item: T) => Promise<void>): Promise<void> {
  const left = items[Symbol.iterator]();
  const work = async (): Promise<void> => {
    for (let next = left.next(); next.done !== true; next = left.next()) await act(next.value);
  };
  await Promise.all(Array.from({ length: 8 }, work));
}

test('no text in an operation is answered as a bug', async () => {
  const bugs: unknown[] = [];
  const cases = ODD.flatMap((odd) => judged.flatMap((input) => [...withEachText(input, odd)]));
  await inParallel(cases, async (given) => {
    const { status, body } = await ask('/v1/jobs?dry-run=1', given);
    if (status === 500 || isBug(body)) bugs.push([given, body]);
  });
  assert.ok(cases.length > 1000);
  assert.deepEqual(bugs, []);
});

test('no text in a setting is answered as a bug, and all records can be read after it', async () => {
  const bugs: unknown[] = [];
  const cases = ODD.flatMap((odd) => done.flatMap((input) => [...withEachText(input, odd)]));
  await inParallel(cases, async (given) => {
    const error = await submit(given);
    if (isBug(error)) bugs.push([given, error]);
  });
  assert.deepEqual(bugs, []);
  for (const path of ['/v1/os', '/v1/profiles', '/v1/networks', '/v1/cluster', '/v1/instances'])
    assert.equal((await ask(path)).status, 200, path);
});

test('no text in the path or the query of a question is answered as a bug', async () => {
  const { paths } = JSON.parse((await ask('/v1/openapi.json')).body) as {
    paths: Record<string, Record<string, { parameters?: { in: string; name: string }[] }>>;
  };
  const questions = Object.entries(paths).flatMap(([path, { get }]) => {
    if (get === undefined || path === '/v1/machines/events') return [];
    const query = (get.parameters ?? []).filter((parameter) => parameter.in === 'query');
    const known = path.replaceAll(/\{\w+\}/g, NAME);
    return ODD.map(encodeURIComponent).flatMap((odd) => [
      ...(known === path ? [] : [path.replaceAll(/\{\w+\}/g, odd)]),
      ...query.map(({ name }) => `${known}?${name}=${odd}`),
    ]);
  });
  const bugs: unknown[] = [];
  await inParallel(questions, async (path) => {
    const { status, body } = await ask(path);
    if (status === 500 || body.includes('"code":"INTERNAL"')) bugs.push([path, body]);
  });
  assert.ok(questions.length > 200, String(questions.length));
  assert.deepEqual(bugs, []);
});

test('no command fails as a bug for an empty name', async () => {
  for (const [program, ...args] of [
    ['gnt-os', 'info', ''],
    ['gnt-os', 'modify', '--hidden', 'yes', ''],
    ['gnt-instance', 'info', ''],
    ['gnt-instance', 'add', '-o', '', 'web9'],
    ['gnt-instance', 'add', '-o', '+v1', 'web9'],
    ['gnt-instance', 'startup', ''],
    ['gnt-node', 'info', ''],
    ['gnt-cluster', 'modify', '--default-os', ''],
  ] as const) {
    const { status, stdout, stderr } = await lab.run(program, args);
    assert.equal(status, 2, `${program} ${args.join(' ')}: ${stderr}${stdout}`);
    assert.match(stderr, /^error\[(?!INTERNAL)/);
  }
});

test('the daemon has logged no bug', async () => {
  const log = await readFile(join(lab.paths.root, 'noded.log'), 'utf8');
  const unexpected = log.split('\n').filter((line) => /unexpected/.test(line));
  assert.deepEqual(unexpected, []);
});
