import assert from 'node:assert/strict';
import {
  chmod,
  cp,
  mkdir,
  mkdtemp,
  rename,
  rm,
  symlink,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { run } from '#shared/process/run.ts';

const BUNDLE = 'node_modules/.cache/gnt-programs';
const SOURCES = ['noded', 'metad', 'appliance', 'cluster-cli', 'shared'];
const LONG_AGO = new Date('2026-01-01T00:00:00Z');

let top = '';
before(async () => {
  top = await mkdtemp(join(tmpdir(), 'gnt-launcher-'));
  await mkdir(join(top, 'scripts'));
  await cp(join(import.meta.dirname, '../../scripts/gnt'), join(top, 'scripts/gnt'));
  for (const name of ['gnt-instance', 'gnt-noded']) await symlink('scripts/gnt', join(top, name));
  // Prints its arguments instead of running them.
  await write(
    'node_modules/.bin/node',
    '#!/bin/sh\nwhile [ "$1" != "${1#--}" ]; do shift; done; echo "$1 $2"\n',
  );
  await chmod(join(top, 'node_modules/.bin/node'), 0o755);
  for (const file of ['node_modules/.lock-stamp', 'package.json', 'scripts/bundle.ts'])
    await write(file, '');
  for (const folder of SOURCES) await write(`${folder}/main.ts`, '');
});
after(() => rm(top, { recursive: true }));

async function write(path: string, text: string): Promise<void> {
  await mkdir(dirname(join(top, path)), { recursive: true });
  await writeFile(join(top, path), text);
}

/** Makes a bundle as a set-up does, later than all other files. */
async function makeBundle(): Promise<void> {
  await sleep(20);
  await write(`${BUNDLE}/cluster-cli/main.cjs`, '');
  await write(`${BUNDLE}/noded/main.mjs`, '');
  await write(`${BUNDLE}/made`, '');
  await sleep(20);
}

async function started(program = 'gnt-instance'): Promise<string> {
  const { stdout } = await run(join(top, program), ['list']);
  return stdout.trim().replace(`${top}/`, '');
}

test('a launcher without a bundle runs the sources', async () => {
  assert.equal(await started(), 'cluster-cli/main.ts list');
});

test('a bundle runs until a source, a folder of sources or the packages change', async () => {
  const bundled = `${BUNDLE}/cluster-cli/main.cjs list`;
  for (const changed of [
    ...['cluster-cli/main.ts', 'shared', 'scripts/bundle.ts'],
    ...['node_modules/.lock-stamp', 'package.json'],
  ]) {
    await makeBundle();
    assert.equal(await started(), bundled);
    // As rsync and tar preserve it: a new file with an old time.
    await utimes(join(top, changed), LONG_AGO, LONG_AGO);
    assert.equal(await started(), 'cluster-cli/main.ts list', changed);
  }
  await makeBundle();
  assert.equal(await started(), bundled);
});

test("a change in the sources of a daemon outdates the daemon's bundle, and not the command's bundle", async () => {
  await makeBundle();
  assert.equal(await started('gnt-noded'), `${BUNDLE}/noded/main.mjs list`);
  await utimes(join(top, 'metad/main.ts'), LONG_AGO, LONG_AGO);
  assert.equal(await started('gnt-noded'), 'noded/main.ts list');
  assert.equal(await started(), `${BUNDLE}/cluster-cli/main.cjs list`);
});

test('the sources run when the bundle is from the future or a source folder is missing', async () => {
  const source = 'cluster-cli/main.ts list';
  await makeBundle();
  const tomorrow = new Date(Date.now() + 86_400_000);
  await utimes(join(top, BUNDLE, 'made'), tomorrow, tomorrow);
  assert.equal(await started(), source);
  await makeBundle();
  await rename(join(top, 'shared'), join(top, 'gone'));
  assert.equal(await started(), source);
  await rename(join(top, 'gone'), join(top, 'shared'));
});

test('an installed package runs its own program', async () => {
  await write('programs/cluster-cli/main.cjs', '');
  assert.equal(await started(), 'programs/cluster-cli/main.cjs list');
});

test('version and help are printed from the packaged files, and other arguments go to the program', async () => {
  const help = 'programs/cluster-cli/help';
  await write(`${help}/version`, '1.2.3\n');
  await write(`${help}/gnt-instance`, 'the program\n');
  await write(`${help}/gnt-instance.list`, 'the list\n');
  const say = async (...args: string[]): Promise<string> =>
    (await run(join(top, 'gnt-instance'), args)).stdout.trim().replace(`${top}/`, '');
  assert.equal(await say('--version'), '1.2.3');
  assert.equal(await say('-h'), 'the program');
  assert.equal(await say('list', '--help'), 'the list');
  await write(`${help}/gnt-instance.list.all`, 'the whole list\n');
  assert.equal(await say('list', '--help-all'), 'the whole list');
  const main = 'programs/cluster-cli/main.cjs';
  assert.equal(await say('lists', '--help'), `${main} lists`);
  assert.equal(await say('a/../../version', '--help'), `${main} a/../../version`);
  assert.equal(await say('--help', 'list'), `${main} --help`);
});

test('help and version are shown with exit status 0 on a terminal of any size', async () => {
  const help = 'programs/cluster-cli/help';
  const main = 'programs/cluster-cli/main.cjs';
  await write(main, '');
  await write(`${help}/version`, '1.2.3\n');
  await write(`${help}/gnt-instance`, 'the program\n');
  await write(`${help}/gnt-instance.list`, 'the list\n');
  const env = { PATH: process.env['PATH'] ?? '' };
  for (const [columns, args, shown] of [
    [80, '--help', 'the program'],
    [200, '-h', 'the program'],
    [80, 'list --help', 'the list'],
    [80, '--version', '1.2.3'],
    // A serial console without a size.
    [0, '--help', 'the program'],
    // Narrower than the file: the program wraps its help itself.
    [60, '--help', `${main} --help`],
    [60, 'list -h', `${main} list`],
    // The size is that of the terminal that shows the help, whatever stdin is.
    [80, '--help </dev/null', 'the program'],
    [60, '--help </dev/null', `${main} --help`],
    [60, '--help 2>/dev/null', `${main} --help`],
    [60, '--help >/dev/null', ''],
    [60, '--help | cat', 'the program'],
  ] as const) {
    const command = `stty cols ${columns} rows 24; exec ${join(top, 'gnt-instance')} ${args}`;
    const { stdout } = await run('script', ['-qefc', command, '/dev/null'], { env });
    assert.equal(stdout.trim().replace(`${top}/`, ''), shown, `${args} at ${columns} columns`);
  }
});

test('COLUMNS sets the width of the help without a terminal', async () => {
  const main = 'programs/cluster-cli/main.cjs';
  await write(main, '');
  await write('programs/cluster-cli/help/gnt-instance', 'the program\n');
  for (const [COLUMNS, shown] of [
    ['60', `${main} --help`],
    ['80', 'the program'],
    ['', 'the program'],
    ['none', 'the program'],
    ['-1', 'the program'],
    ['0', 'the program'],
    ['99999999999999999999', 'the program'],
  ] as const) {
    const { stdout, stderr } = await run(join(top, 'gnt-instance'), ['--help'], {
      env: { PATH: process.env['PATH'] ?? '', COLUMNS },
    });
    assert.equal(stdout.trim().replace(`${top}/`, ''), shown, `COLUMNS=${COLUMNS}`);
    assert.equal(stderr, '');
  }
});
