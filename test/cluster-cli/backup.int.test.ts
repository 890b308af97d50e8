import assert from 'node:assert/strict';
import { resolve } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import type { Opcode } from '#shared/contract/opcode.ts';
import { type DaemonStandIn, startDaemonStandIn } from './support/daemon-stand-in.ts';
import { runInProcess } from './support/run-in-process.ts';
import type { ProgramEnd } from './support/run-program.ts';

let daemon: DaemonStandIn;
before(async () => {
  daemon = await startDaemonStandIn();
});
after(() => daemon.close());
beforeEach(() => daemon.submitted.splice(0));

const backup = (...args: readonly string[]): Promise<ProgramEnd> =>
  runInProcess('gnt-backup', args, { root: daemon.root });

async function submitted(...args: readonly string[]): Promise<Opcode> {
  const { status, stderr } = await backup(...args);
  assert.equal(status, 0, stderr);
  const [opcode] = daemon.submitted;
  assert.ok(opcode);
  return opcode;
}

test('remove --force removes the export and reports it', async () => {
  const { status, stderr } = await backup('remove', '--force', 'web1');
  assert.deepEqual([status, stderr], [0, 'export of web1 removed\n']);
  assert.deepEqual(daemon.submitted, [{ opcode: 'BACKUP_REMOVE', name: 'web1' }]);
});

test('remove without --force and without a terminal is refused and submits nothing', async () => {
  const { status, stderr } = await backup('remove', 'web1');
  assert.equal(status, 2);
  assert.match(
    stderr,
    /^error\[USAGE\]: This removes the export of web1\. .*\nhint: Add --force$/m,
  );
  assert.deepEqual(daemon.submitted, []);
});

test('remove --json prints the job alone', async () => {
  const { stdout, stderr } = await backup('remove', '--force', '--json', 'web1');
  assert.equal((JSON.parse(stdout) as { status: string }).status, 'success');
  assert.equal(stderr, '');
});

test('export sends both time limits and reports its end', async () => {
  const args = ['export', '--shutdown-timeout', '7', '--install-timeout', '60', 'web1'];
  const { stderr } = await backup(...args);
  assert.equal(stderr, 'instance web1 exported\n');
  assert.deepEqual(daemon.submitted, [
    { opcode: 'BACKUP_EXPORT', name: 'web1', shutdownTimeoutS: 7, installTimeoutS: 60 },
  ]);
});

for (const [what, args, expected] of [
  ['the export of the new name', [], 'web1'],
  ['the export of another name', ['--src-dir', 'web0'], 'web0'],
  ['a whole path', ['--src-dir', '/srv/web0'], '/srv/web0'],
  ['a directory beside the command', ['--src-dir', './web0'], resolve('web0')],
  ['the directory of the command', ['--src-dir', '.'], resolve('.')],
] as const) {
  test(`import takes ${what}`, async () => {
    const opcode = await submitted('import', ...args, 'web1');
    assert.equal('importFrom' in opcode && opcode.importFrom, expected);
  });
}

test('import sends its NICs, backend parameters and tags', async () => {
  const given = ['--net', '0:mode=user', '-B', 'vcpus=2', '--tags', 'a', '--no-start'];
  const opcode = await submitted('import', ...given, 'web1');
  assert.equal(opcode.opcode, 'INSTANCE_CREATE');
  assert.deepEqual(opcode.nics, [{ mac: 'auto', mode: 'user' }]);
  assert.deepEqual([opcode.beparams, opcode.tags], [{ vcpus: 2 }, ['a']]);
  assert.deepEqual([opcode.install, opcode.start], [true, false]);
});

test('list shows exports by name, with size, time and problem', async () => {
  const common = {
    path: '/srv/x',
    createdAtMs: Date.UTC(2026, 10, 21),
    osType: 'noop',
    instance: null,
    losses: [],
  };
  daemon.exports.push(
    { ...common, name: 'web2', sizeBytes: 2 ** 30, problem: 'dump of disk 0 is missing' },
    { ...common, name: 'web1', sizeBytes: 2 ** 21, problem: null },
  );
  const fields = 'name,os,size,path,problem';
  const { stdout } = await backup('list', '--no-headers', '--separator', '|', '-o', fields);
  assert.equal(stdout, 'web1|noop|2|/srv/x|-\nweb2|noop|1024|/srv/x|dump of disk 0 is missing\n');
});

test('import --all imports each export under its own name, shows losses, and continues after failures', async (t) => {
  const before = daemon.refuse;
  t.after(() => {
    daemon.refuse = before;
    daemon.exports.splice(0);
  });
  const common = { createdAtMs: 0, osType: 'noop', sizeBytes: 1, problem: null, losses: [] };
  daemon.exports.splice(0, Infinity, {
    ...{ ...common, name: 'a', path: '/srv/x/a', instance: 'web1', losses: ['disk template drbd'] },
  });
  daemon.exports.push(
    { ...common, name: 'b', path: '/srv/x/b', instance: 'web2' },
    { ...common, name: 'c', path: '/srv/x/c', instance: null, problem: 'config.ini: line 1' },
    { ...common, name: 'd', path: '/srv/x/d', instance: 'web3' },
  );
  daemon.refuse = (opcode) =>
    'name' in opcode && opcode.name === 'web2'
      ? { status: 409, code: 'INSTANCE_EXISTS', message: 'it exists', hint: null, details: {} }
      : null;
  const { status, stderr } = await backup('import', '--all', '/srv/x', '--no-start');
  assert.equal(status, 1);
  assert.deepEqual(
    daemon.submitted.map((opcode) =>
      opcode.opcode === 'INSTANCE_CREATE' ? [opcode.name, opcode.importFrom, opcode.start] : [],
    ),
    [
      ['web1', '/srv/x/a', false],
      ['web3', '/srv/x/d', false],
    ],
  );
  assert.match(stderr, /^web1: from \/srv\/x\/a\n {2}lost: disk template drbd$/m);
  assert.match(stderr, /^warning: web2: it exists \(INSTANCE_EXISTS\)$/m);
  assert.match(stderr, /^warning: \/srv\/x\/c: config\.ini: line 1$/m);
  assert.match(stderr, /^2 of 4 export\(s\) imported$/m);
  daemon.submitted.splice(0);
  const dry = await backup('import', '--all', '/srv/x', '--dry-run', '--json');
  assert.equal(dry.status, 1);
  assert.deepEqual(
    (JSON.parse(dry.stdout) as { error: string | null }[]).map(({ error }) => error === null),
    [true, false, false, true],
  );
  assert.deepEqual(daemon.submitted, []);
});

test('import takes a name or --all, and refuses both and neither', async () => {
  for (const args of [[], ['--all', '/srv/x', 'web1'], ['--all', '/srv/x', '--src-dir', 'web1']])
    assert.equal((await backup('import', ...args)).status, 2);
  assert.deepEqual(daemon.submitted, []);
});

test('import --all refuses an empty directory name, which an unset variable gives', async () => {
  const { status, stderr } = await backup('import', '--all', '');
  assert.deepEqual([status, daemon.submitted.length], [2, 0]);
  assert.match(stderr, /option --all: the name of the directory is empty/);
});

test('import --all shows texts of exports on one line and without escape sequences', async (t) => {
  t.after(() => void daemon.exports.splice(0));
  const common = { createdAtMs: 0, osType: 'noop', sizeBytes: 1, problem: null, losses: [] };
  daemon.exports.splice(
    ...[0, Infinity],
    { ...common, name: 'a', path: '/srv/x/a', instance: 'web1', losses: ['NIC \u001b[2J\nok'] },
    { ...common, name: 'b', path: '/srv/x/b\nerror', instance: null, problem: '\u001b[2J\nok' },
  );
  const { stderr } = await backup('import', '--all', '/srv/x', '--dry-run');
  assert.ok(!stderr.includes('\u001b'), stderr);
  assert.match(stderr, /^ {2}lost: NIC {2}?ok$/m);
  assert.match(stderr, /^warning: \/srv\/x\/b error: +ok$/m);
});

test('import --all names the exports that an interrupt leaves out', async (t) => {
  const before = daemon.refuse;
  t.after(() => {
    daemon.refuse = before;
    daemon.exports.splice(0);
    daemon.submitted.splice(0);
  });
  const common = { createdAtMs: 0, osType: 'noop', sizeBytes: 1, problem: null, losses: [] };
  daemon.exports.splice(0);
  for (const name of ['web1', 'web2', 'web3'])
    daemon.exports.push({ ...common, name, path: `/srv/x/${name}`, instance: name });
  const listening: (() => void)[] = [];
  daemon.refuse = () => {
    listening[0]?.();
    return null;
  };
  const { status, stderr } = await runInProcess(
    'gnt-backup',
    ['import', '--all', '/srv/x', '--submit'],
    { root: daemon.root, onStart: (interrupt) => void listening.push(interrupt) },
  );
  assert.equal(status, 130);
  assert.match(stderr, /^not imported: web2, web3$/m);
  assert.equal(daemon.submitted.length, 1);
});
