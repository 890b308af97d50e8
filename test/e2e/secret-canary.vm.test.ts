import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { cp, mkdir, open, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { feedCoresToProgram, type FedCores } from '../lab/feed-cores.ts';
import { askSocket } from '../lab/ask-socket.ts';
import { findSecret, holdsInMemory, tells } from '../../scripts/demo/find-secret.ts';
import { createLab, type Lab, type ProgramResult } from '../../scripts/demo/lab.ts';
import { endLab } from './support/end-lab.ts';
import { instanceInfo } from '#shared/contract/instance.ts';
import { jobRecord } from '#shared/contract/job.ts';
import { run } from '#shared/process/run.ts';
import { listenOnLoopback } from '../lab/listen-on-loopback.ts';

/**
 * One instance through failure, crashes, success and change, in this order, with recognizable
 * secrets. After each step, no file, swap, core, answer, command line or environment contains a
 * secret, nor does the memory of a process that does not need it. The private value and the texts
 * of hooks are only in the store, and in the note of a running QEMU process.
 */
const NAME = 'canary.example.com';
const secret = randomBytes(20).toString('hex');
/** The secret, with characters that each notation escapes differently. */
const writtenSecret = `k"y'${secret} &é%`;
const changedSecret = randomBytes(20).toString('hex');
const password = randomBytes(20).toString('hex');
const privateValue = randomBytes(20).toString('hex');
const secrets = [secret, changedSecret, password];
const hookText = randomBytes(20).toString('hex');
const changedHookText = randomBytes(20).toString('hex');
const project = join(import.meta.dirname, '../..');
let lab: Lab;
let given: string;
let packages: Server;
let packageUrl: string;
let coresBefore: readonly string[];
let cores: FedCores | null = null;
/** Crashed processes. */
const killed: number[] = [];
/** All output of the programs. */
const printed: string[] = [];

before(async () => {
  lab = await createLab('gnt-canary');
  // Allow core files, so that a program could leave one.
  await run('prlimit', ['--pid', String(process.pid), '--core=unlimited']);
  coresBefore = await coreFiles();
  given = join(lab.paths.root, 'given');
  await mkdir(given, { mode: 0o700 });
  const values = { secret: writtenSecret, changedSecret, password, privateValue };
  for (const [name, value] of Object.entries(values)) await writeFile(join(given, name), value);
  await writeFile(join(given, 'hooks.yaml'), indiscreetHook(hookText));
  await writeFile(join(given, 'changed.yaml'), indiscreetHook(changedHookText));
  const [osDir = ''] = lab.paths.osSearchPath;
  await mkdir(osDir, { recursive: true });
  await cp(join(import.meta.dirname, '../../fixtures/os/hello'), join(osDir, 'hello'), {
    recursive: true,
  });
  cores = await feedCoresToProgram(lab.paths.root);
  // A script that prints everything.
  const hooks = 'curl -s http://169.254.169.254/ganeti/latest/install/hooks.json';
  const tell =
    `${hooks}\n` +
    'set -x\nenv\necho "it is $OSP_API_KEY" >&2\nprintf %s "$OSP_API_KEY $OSP_OWNER"\n' +
    WRITTEN_FORMS;
  for (const [name, end] of [
    ['failing', 'sleep 1000 &\nexit 9'],
    ['sleeping', 'exec sleep 600'],
  ] as const) {
    await cp(join(osDir, 'hello'), join(osDir, name), { recursive: true });
    await writeFile(join(osDir, name, 'untrusted/create'), `#!/bin/sh\n${tell}\n${end}\n`);
  }
  const archive = join(lab.paths.root, 'x.tar.gz');
  await run('tar', ['-C', osDir, '-czf', archive, 'hello']);
  const bytes = await readFile(archive);
  const login = `Basic ${Buffer.from(`someone:${password}`).toString('base64')}`;
  packages = createServer((request, response) => {
    const isKnown = request.headers.authorization === login;
    response.writeHead(isKnown ? 200 : 401).end(isKnown ? bytes : 'who are you?');
  });
  packageUrl = `http://127.0.0.1:${await listenOnLoopback(packages)}/x.tar.gz`;
  await lab.startNode();
});

after(async () => {
  cores?.[Symbol.dispose]();
  packages.close();
  await lab.run('gnt-instance', ['remove', '--force', '--shutdown-timeout=0', NAME]);
  await endLab(lab);
});

/** JSON, URL and base64. `set -x` adds a shell's notation. */
const WRITTEN_FORMS = `
printf '{"json":"%s"}\\n' "$(printf %s "$OSP_API_KEY" | sed 's/"/\\\\"/g')"
printf 'url=%s\\n' "$(printf %s "$OSP_API_KEY" | sed 's/%/%25/g; s/"/%22/g; s/ /%20/g; s/&/%26/g; s/é/%C3%A9/g')"
printf 'base64 %s\\n' "$(printf %s "$OSP_API_KEY" | base64 -w 0)"
printf 'base64 of more %s\\n' "$(printf 'xy%sz' "$OSP_API_KEY" | base64)"
`;

/**
 * Returns a hook that prints its environment, and fails in every way that could show the text in
 * it.
 */
const indiscreetHook = (text: string): string => `# ${text}
stages:
  before-install:
    - commands: ['env; echo "hook has $OSP_API_KEY"; printf %s "$OSP_API_KEY $OSP_OWNER" >&2']
    - optional: true
      if: test ${text} != no
      files: [{path: /run/${text}, content: ${text}}]
      commands: ['exit 3 # ${text}']
    - optional: true
      downloads: [{url: 'http://someone:${text}@127.0.0.1/${text}', path: /run/x}]
    - optional: true
      files: [{path: /etc/passwd/${text}/x, content: ${text}}]
`;

async function instance(...words: string[]): Promise<ProgramResult> {
  const result = await lab.run('gnt-instance', [...words, NAME]);
  printed.push(result.stdout, result.stderr);
  return result;
}

const secretOptions = (): string[] => [
  '--os-parameters-secret', `api-key=@${join(given, 'secret')}`,
  '--personalization-password', `@${join(given, 'password')}`, '--personalization-user', 'someone',
]; // prettier-ignore

const reinstall = (os: string): Promise<ProgramResult> =>
  instance('reinstall', '--force', '-o', os, ...secretOptions());

/** Waits for the present installation. The previous log stays until the next one begins. */
async function untilScriptRuns(): Promise<void> {
  for (let attempt = 0; attempt < 1800; attempt += 1) {
    const { install } = instanceInfo
      .partial()
      .parse(JSON.parse((await ask(`/v1/instances/${NAME}`)).body));
    const isInScript = install?.state === 'installing' && install.stage === 'os-scripts';
    if (isInScript && (await ask(`/v1/instances/${NAME}/log`)).body.includes('it is <redacted>'))
      return;
    await sleep(100);
  }
  assert.fail('the script never ran');
}

async function killProcess(pattern: RegExp, signal: NodeJS.Signals): Promise<void> {
  const target = (await lab.processes()).find(({ command }) => pattern.test(command));
  assert.ok(target, `no process matches ${pattern}`);
  killed.push(target.pid);
  process.kill(target.pid, signal);
}

const isAllowed = (path: string): boolean =>
  path.startsWith(`${given}/`) || path.startsWith(`${lab.paths.disksDir}/`);

/**
 * Tells whether a path is the note of a running QEMU process, readable by root only, for finding a
 * process without its record.
 */
const isNote = (path: string): boolean =>
  path.startsWith(`${lab.paths.vmDir}/`) && path.endsWith('/note');

async function answers(): Promise<readonly string[]> {
  const bodies: string[] = [];
  const jobs = jobRecord.array().parse(JSON.parse((await ask('/v1/jobs')).body));
  for (const path of [
    '/v1/node', '/v1/nodes', '/v1/cluster', '/v1/doctor', '/v1/os', '/v1/os/hello', '/metrics', '/v1/jobs', '/v1/instances',
    ...['', '/log', '/metadata/', '/metadata/ganeti/latest/os/parameters.json', '/metadata/ganeti/latest/meta_data.json',
      '/metadata/ganeti/latest/install/plan.json', '/metadata/ganeti/latest/install/hooks.json'].map(
      (rest) => `/v1/instances/${NAME}${rest}`,
    ),
    ...jobs.flatMap(({ id }) => [`/v1/jobs/${id}`, ...(jobs.at(-1)?.id === id ? [] : [`/v1/jobs/${id}/events`])]),
  ]) bodies.push((await ask(path)).body); // prettier-ignore
  return bodies;
}

const ask = (path: string): ReturnType<typeof askSocket> => askSocket(lab.paths.nodedSocket, path);

/** Lists cores in the working directories of the programs. */
async function coreFiles(): Promise<readonly string[]> {
  const names = await Promise.all([project, '/'].map((dir) => readdir(dir)));
  return names.flat().filter((name) => /^core(\.\d+)?$/.test(name));
}

/** Both daemons, QEMU, and the command that waits for its job. */
const HOLDERS = /noded\/main|metad\/main|qemu-system|cluster-cli\/main/;

/** Checks that no secret has leaked. */
async function assertKept(text = hookText): Promise<void> {
  assert.deepEqual(await findSecret(secrets, lab.paths.root, isAllowed), []);
  const store = lab.paths.storeFile;
  for (const value of [privateValue, text]) {
    const places = await findSecret(value, lab.paths.root, isAllowed);
    assert.deepEqual(
      places.filter(
        (path) => ![store, `${store}-wal`, `${store}-shm`].includes(path) && !isNote(path),
      ),
      [],
    );
    assert.notDeepEqual(places, []);
  }
  const told = [...(await answers()), ...printed].join('\n');
  for (const value of [...secrets, privateValue, text]) assert.ok(!tells(told, value));
  assert.deepEqual(await coreFiles(), coresBefore);
  if (cores !== null) {
    // Other processes of this host may have crashed.
    const fed = (await readdir(cores.directory)).filter((pid) => killed.includes(Number(pid)));
    assert.deepEqual(fed, []);
  }
  await assertUnheld();
}

/** Checks the memory of all processes that do not need a secret. */
async function assertUnheld(): Promise<void> {
  const others = (await lab.processes()).filter(({ command }) => !HOLDERS.test(command));
  for (const { pid, command } of others)
    for (const value of secrets)
      assert.ok(!(await holdsInMemory(value, pid).catch(() => false)), command);
}

async function holders(value: string): Promise<readonly string[]> {
  const names: string[] = [];
  for (const { pid, command } of await lab.processes()) {
    const holds = await holdsInMemory(value, pid).catch(() => false);
    if (holds) names.push(HOLDERS.exec(command)?.[0] ?? command);
  }
  return names.sort();
}

test('the search finds a planted value in a file, torn, encoded, in a journal, a deleted file, a command line, an environment and a process', async () => {
  const planted = randomBytes(20).toString('hex');
  const { root } = lab.paths;
  const file = join(root, 'planted');
  const torn = join(root, 'planted-torn');
  await writeFile(torn, `${planted.slice(0, 25)} ${planted.slice(25)}`);
  const encoded = join(root, 'planted-encoded');
  await writeFile(encoded, Buffer.from(`a ${planted}`).toString('base64'));
  // Across the border of two chunks of the reader.
  await writeFile(file, `${'x'.repeat(1024 * 1024 - 10)}${planted}`);
  using database = new DatabaseSync(join(root, 'planted.sqlite'));
  database.exec(`PRAGMA journal_mode=WAL; CREATE TABLE t (v); INSERT INTO t VALUES ('${planted}')`);
  const deleted = join(root, 'planted-deleted');
  await using open_ = await open(deleted, 'w+');
  await open_.write(planted);
  await rm(deleted);
  const child = spawn('sleep', ['60'], { env: { PLANTED: planted }, argv0: `sleep-${planted}` });
  try {
    const found = await findSecret(planted, root, isAllowed);
    assert.deepEqual(
      new Set(found),
      new Set([
        file,
        torn,
        encoded,
        join(root, 'planted.sqlite-wal'),
        deleted,
        `/proc/${child.pid}/cmdline`,
        `/proc/${child.pid}/environ`,
      ]),
    );
    assert.ok(await holdsInMemory(planted, child.pid ?? 0));
    assert.ok(!(await holdsInMemory(randomBytes(20).toString('hex'), child.pid ?? 0)));
  } finally {
    child.kill();
    for (const path of [file, torn, encoded]) await rm(path);
  }
});

test('keeps secrets through an installation whose hook and script print them all and fail', async () => {
  const result = await instance(
    'add', '-o', 'failing', '-s', '16M', '-C', 'yes', '--os-parameters-private', `owner=@${join(given, 'privateValue')}`,
    '--personalization-package', packageUrl, '--hooks', join(given, 'hooks.yaml'), ...secretOptions(),
  ); // prettier-ignore
  assert.match(result.stderr, /^error\[SCRIPT_FAILED\]: .*status 9/m);
  const log = await instance('log');
  assert.match(log.stdout, /^OSP_API_KEY=<redacted>$/m);
  assert.match(log.stdout, /^OSP_OWNER=<redacted>$/m);
  assert.match(log.stdout, /only the agent of this installation can read this/);
  assert.match(log.stdout, /^hook has <redacted>\n<redacted> <redacted>$/m);
  for (const form of ['{"json":"', 'url=', 'base64 '])
    assert.ok(log.stdout.includes(`${form}<redacted>`), `${form} in ${log.stdout}`);
  for (const failed of ['commands 1: exited with status 3', 'downloads 1: ', 'files 1: '])
    assert.ok(log.stdout.includes(`of instance/hooks.yaml: ${failed}`), log.stdout);
  await assertKept();
});

test('keeps secrets through a crash of metad and then of noded in the middle of an installation', async () => {
  const reinstalling = reinstall('sleeping');
  await untilScriptRuns();
  await assertKept();
  // Shows that the search of memory works.
  assert.deepEqual(
    (await holders(secret)).filter((name) => !name.startsWith('cluster')),
    ['metad/main', 'noded/main', 'qemu-system'],
  );
  await killProcess(/metad\/main\./, 'SIGSEGV');
  for (let attempt = 0; attempt < 100; attempt += 1) {
    const { body } = await ask('/v1/node');
    if (/"restarts": ?1/.test(body)) break;
    await sleep(200);
  }
  await assertKept();
  const ended = once(lab.node(), 'exit');
  killed.push(lab.node().pid ?? 0);
  lab.node().kill('SIGSEGV');
  await ended;
  await lab.startNode();
  assert.notEqual((await reinstalling).status, 0);
  await assertKept();
  // The new daemon never received the secrets.
  for (const value of secrets)
    assert.ok(!(await holders(value)).includes('noded/main'), 'the new daemon holds a secret');
});

test('keeps secrets through a success, in the running instance, through a change of them and a crash of QEMU', async () => {
  const result = await reinstall('hello');
  assert.equal(result.status, 0, result.stderr);
  await assertKept();
  const changed = await instance(
    'modify', '--os-parameters-secret', `api-key=@${join(given, 'changedSecret')}`, '--hooks', join(given, 'changed.yaml'),
  ); // prettier-ignore
  assert.equal(changed.status, 0, changed.stderr);
  assert.equal(
    instanceInfo.parse(JSON.parse((await instance('info', '--json')).stdout)).status,
    'running',
  );
  await assertKept(changedHookText);
  await killProcess(/qemu-system/, 'SIGSEGV');
  await assertKept(changedHookText);
});
