import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { appendFile, mkdir, mkdtemp, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { machine, tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { AppError } from '#shared/errors/app-error.ts';
import { createApplianceFiles } from '../../../../noded/provision/appliance/appliance-files.ts';
import type { ChildSupervisor } from '../../../../noded/host/child-supervisor.ts';
import type { JobContext } from '../../../../noded/jobs/job-handler.ts';
import { createTestChildren } from '../../support/test-children.ts';

let top = '';
let count = 0;
let children: ChildSupervisor;
before(async () => {
  top = await mkdtemp(join(tmpdir(), 'gnt-appliance-files-'));
  children = createTestChildren(join(top, 'children'));
});
after(() => rm(top, { recursive: true, force: true }));

const contents = { kernel: 'K'.repeat(1000), initrd: 'I'.repeat(2000), root: 'R'.repeat(3000) };

function manifest(): string {
  const file = (name: keyof typeof contents) => ({
    name,
    sizeBytes: contents[name].length,
    sha256: createHash('sha256').update(contents[name]).digest('hex'),
  });
  return JSON.stringify({
    version: 1,
    inputsHash: 'a'.repeat(64),
    architecture: machine(),
    kernelVersion: '6.1.0-1',
    sourceDate: '2026-01-01T00:00:00Z',
    kernelArguments: 'quiet',
    memoryMiB: 256,
    kernel: file('kernel'),
    initrd: file('initrd'),
    root: file('root'),
    packages: [],
  });
}

async function makeAppliance(dir: string): Promise<void> {
  await mkdir(dir, { recursive: true });
  for (const [name, content] of Object.entries(contents)) await writeFile(join(dir, name), content);
  await writeFile(join(dir, 'manifest.json'), manifest());
}

/**
 * Creates a folder for an appliance, and a builder from a shell script that builds into
 * `$APPLIANCE`.
 */
async function createLab(builderScript = 'exit 1') {
  count += 1;
  const dir = join(top, `appliance-${count}`);
  const ready = join(top, `ready-${count}`);
  await makeAppliance(ready);
  const files = createApplianceFiles({
    ...{ dir, importedDir: `${dir}-imported` },
    launch: children.launch,
    builder: { command: '/bin/sh', args: ['-c', builderScript, 'builder'] },
    builderEnvironment: { PATH: '/usr/bin:/bin', APPLIANCE: dir, READY: ready, TOP: top },
  });
  return { dir, ready, files };
}

const BUILD = 'echo built >>"$READY/count"; cp -r "$READY" "$APPLIANCE"';

function createContext(signal = new AbortController().signal) {
  const lines: string[] = [];
  const context: JobContext = {
    jobId: 1,
    signal,
    report: {
      log: (message) => lines.push(message),
      waits: () => undefined,
      stageStarted: () => undefined,
      stageFinished: () => undefined,
      progress: () => undefined,
      output: () => undefined,
      scriptOutput: () => undefined,
    },
  };
  return { context, lines };
}

async function buildsOf(dir: string): Promise<number> {
  const text = await readFile(join(dir, 'count'), 'utf8');
  return text.split('\n').filter(Boolean).length;
}

test('hooks of the appliance are known by its manifest, without a look at the other files', async () => {
  const { dir, files } = await createLab();
  assert.deepEqual(await files.hooksOf('built'), []);
  await makeAppliance(dir);
  assert.deepEqual(await files.hooksOf('built'), []);
  const hooks = [{ name: 'a.yaml', sha256: 'b'.repeat(64) }];
  await writeFile(
    join(dir, 'manifest.json'),
    JSON.stringify({ ...(JSON.parse(manifest()) as object), hooks }),
  );
  assert.deepEqual(await files.hooksOf('built'), ['a.yaml']);
});

test('an intact appliance is found with its manifest, its digest and paths', async () => {
  const { dir, files } = await createLab();
  await makeAppliance(dir);
  const appliance = await files.verify('built');
  assert.equal(appliance.rootPath, join(dir, 'root'));
  assert.equal(appliance.manifest.kernelVersion, '6.1.0-1');
  const digest = createHash('sha256').update(manifest()).digest('hex');
  assert.equal(appliance.digest, `sha256:${digest}`);
});

test('where there is none, that is said', async () => {
  const { files } = await createLab();
  await assert.rejects(files.verify('built'), { code: 'APPLIANCE_MISSING' });
});

for (const [what, damage] of Object.entries({
  'a changed byte': (dir: string) => writeFile(join(dir, 'root'), `X${contents.root.slice(1)}`),
  'a missing end': (dir: string) => truncate(join(dir, 'initrd'), 100),
  'something at the end': (dir: string) => appendFile(join(dir, 'kernel'), 'x'),
  'a missing file': (dir: string) => rm(join(dir, 'kernel')),
  'a manifest that is no JSON': (dir: string) => writeFile(join(dir, 'manifest.json'), '{'),
  'a manifest that names a file elsewhere': (dir: string) =>
    writeFile(join(dir, 'manifest.json'), manifest().replace('"kernel"', '"../kernel"')),
} satisfies Record<string, (dir: string) => Promise<unknown>>)) {
  test(`${what} is found before the appliance is booted`, async () => {
    const { dir, files } = await createLab();
    await makeAppliance(dir);
    await damage(dir);
    await assert.rejects(files.verify('built'), { code: 'APPLIANCE_CORRUPT' });
  });
}

test('what is missing is built, once, with the steps of the builder told', async () => {
  const { dir, files } = await createLab(
    `echo '{"type":"step","text":"packing"}'; echo 'no JSON'; ${BUILD}`,
  );
  const { context, lines } = createContext();
  await files.ensure('built', context);
  await files.ensure('built', context);
  assert.ok(lines.includes('appliance: packing'), lines.join('\n'));
  assert.equal(await buildsOf(dir), 1);
});

test('installs that come while one builds wait for that build', async () => {
  const { dir, files } = await createLab(`sleep 0.3; ${BUILD}`);
  await Promise.all([1, 2, 3].map(() => files.ensure('built', createContext().context)));
  assert.equal(await buildsOf(dir), 1);
});

test("the builder's own error is the job's", async () => {
  const error = { type: 'error', code: 'DISK_FULL', message: 'no space', hint: 'free some' };
  const { files } = await createLab(`echo '${JSON.stringify(error)}'; exit 1`);
  await assert.rejects(files.ensure('built', createContext().context), {
    code: 'DISK_FULL',
    message: 'no space',
    hint: 'free some',
  });
});

test('a builder that dies without a word is told with the last it said', async () => {
  const { files } = await createLab('echo "mmdebstrap: no mirror" >&2; exit 1');
  await assert.rejects(files.ensure('built', createContext().context), {
    code: 'APPLIANCE_BUILD',
    message: /mmdebstrap: no mirror/,
  });
});

test('a builder that cannot be started is told', async () => {
  const files = createApplianceFiles({
    ...{ dir: join(top, 'never'), importedDir: top },
    launch: children.launch,
    builder: { command: join(top, 'no-such-program'), args: [] },
    builderEnvironment: {},
  });
  await assert.rejects(files.ensure('built', createContext().context), { code: 'APPLIANCE_BUILD' });
});

test('an imported one that is missing or damaged is refused, and nothing is built in its place', async () => {
  const { dir, files } = await createLab(BUILD);
  const { context } = createContext();
  const own = join(`${dir}-imported`, 'mine');
  await assert.rejects(files.ensure('mine', context), {
    code: 'APPLIANCE_MISSING',
    message: `no appliance in ${own}`,
    hint: /gnt-appliance import DIR\|TAR --name mine/,
  });
  await makeAppliance(own);
  assert.equal((await files.ensure('mine', context)).rootPath, join(own, 'root'));
  assert.equal(await files.memoryMiB('mine'), 256);
  await appendFile(join(own, 'root'), 'x');
  await assert.rejects(files.ensure('mine', context), {
    code: 'APPLIANCE_CORRUPT',
    message: /root has/,
  });
  await assert.rejects(files.verify('other'), { code: 'APPLIANCE_MISSING' });
  await assert.rejects(readFile(join(dir, 'manifest.json')), { code: 'ENOENT' });
  assert.equal((await files.ensure('built', context)).rootPath, join(dir, 'root'));
});

test('an imported one that cannot run on this node is refused by name, and its hooks are known', async () => {
  const { dir, files } = await createLab();
  assert.deepEqual(await files.hooksOf('mine'), []);
  const own = join(`${dir}-imported`, 'mine');
  await makeAppliance(own);
  const hooks = [{ name: 'a.yaml', sha256: 'b'.repeat(64) }];
  for (const [changes, message] of [
    [
      { memoryMiB: 1e9, hooks },
      /'mine' cannot run on this node: its memoryMiB of 1000000000 exceeds/,
    ],
    [{ architecture: 's390x', hooks }, /'mine' cannot run on this node: .*"s390x"/],
  ] as const) {
    const changed = { ...(JSON.parse(manifest()) as object), ...changes };
    await writeFile(join(own, 'manifest.json'), JSON.stringify(changed));
    await assert.rejects(files.verify('mine'), { code: 'VALIDATION', message });
    await assert.rejects(files.ensure('mine', createContext().context), {
      code: 'VALIDATION',
      message,
    });
  }
  assert.deepEqual(await files.hooksOf('mine'), ['a.yaml']);
});

test('after a failed build the next install builds again', async () => {
  const { files } = await createLab(
    `[ -e "$READY/tried" ] || { touch "$READY/tried"; exit 1; }; ${BUILD}`,
  );
  await assert.rejects(files.ensure('built', createContext().context), { code: 'APPLIANCE_BUILD' });
  await files.ensure('built', createContext().context);
});

test('cancelling ends the builder, and it has ended when the job does', async () => {
  const { ready, files } = await createLab(
    `trap 'sleep 0.2; touch "$READY/ended"; exit 1' TERM; touch "$READY/began"; sleep 3 & wait`,
  );
  const controller = new AbortController();
  const reason = new AppError('JOB_CANCELED', 'job 1 was cancelled');
  const building = files.ensure('built', createContext(controller.signal).context);
  building.catch(() => undefined);
  await waitForFile(join(ready, 'began'));
  controller.abort(reason);
  await assert.rejects(building, (error) => error === reason);
  await readFile(join(ready, 'ended'));
});

test('cancelling the job that builds does not cancel those that wait: one of them builds', async () => {
  const { ready, files } = await createLab(`touch "$READY/began"; sleep 1 & wait; ${BUILD}`);
  const first = new AbortController();
  const building = files.ensure('built', createContext(first.signal).context);
  building.catch(() => undefined);
  await waitForFile(join(ready, 'began'));
  const waiting = files.ensure('built', createContext().context);
  first.abort(new AppError('JOB_CANCELED', 'job 1 was cancelled'));
  await assert.rejects(building, { code: 'JOB_CANCELED' });
  assert.equal((await waiting).manifest.version, 1);
});

test('a job that waits for the build of another can be cancelled by itself', async () => {
  const { ready, files } = await createLab(`touch "$READY/began"; sleep 1 & wait; ${BUILD}`);
  const building = files.ensure('built', createContext().context);
  await waitForFile(join(ready, 'began'));
  const second = new AbortController();
  const waiting = files.ensure('built', createContext(second.signal).context);
  const reason = new AppError('JOB_CANCELED', 'job 2 was cancelled');
  setImmediate(() => second.abort(reason));
  await assert.rejects(waiting, (error) => error === reason);
  await assert.rejects(files.verify('built'), { code: 'APPLIANCE_MISSING' });
  await building;
});

async function waitForFile(path: string): Promise<void> {
  const { setTimeout: sleep } = await import('node:timers/promises');
  for (let attempt = 0; attempt < 500; attempt += 1) {
    try {
      await readFile(path);
      return;
    } catch {
      // A child process creates the file, so there is no event to wait for.
      await sleep(20);
    }
  }
  throw new Error(`${path} never came`);
}
