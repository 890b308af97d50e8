import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { type DaemonStandIn, end, startDaemonStandIn } from './support/daemon-stand-in.ts';
import { runInProcess } from './support/run-in-process.ts';

let daemon: DaemonStandIn;
before(async () => {
  daemon = await startDaemonStandIn();
});
beforeEach(() => void daemon.submitted.splice(0));
after(() => daemon.close());

/** The second example of Ganeti's manual page, for KVM and a template that exists. */
const entry = (name: string) => ({
  mode: 'create',
  instance_name: name,
  disk_template: 'file',
  os_type: 'debootstrap',
  disks: [{ size: '4096', mode: 'rw' }],
  nics: [{ mac: 'generate' }],
  hypervisor: 'kvm',
  hvparams: { boot_order: 'disk' },
  beparams: { maxmem: '1g', minmem: 256 },
  ip_check: false,
});
const create = (entries: unknown, ...options: readonly string[]) =>
  runInProcess('gnt-instance', ['batch-create', ...options, '-'], {
    root: daemon.root,
    input: typeof entries === 'string' ? entries : JSON.stringify(entries),
  });

test("batch-create submits one job for each entry of Ganeti's format", async () => {
  const { status, stdout } = await create([entry('web1'), entry('web2')], '--submit');
  assert.equal(status, 0);
  assert.match(stdout, /^Submitted jobs \d+, \d+$/m);
  for (const opcodes of [daemon.dryRuns, daemon.submitted])
    assert.deepEqual(
      opcodes.map((opcode) => 'name' in opcode && opcode.name),
      ['web1', 'web2'],
    );
  const [opcode] = daemon.submitted;
  assert.ok(opcode?.opcode === 'INSTANCE_CREATE');
  const { disks, nics, beparams, hvparams, osType } = opcode;
  assert.deepEqual([disks[0]?.sizeBytes, osType], [4096 * 1024 ** 2, 'debootstrap']);
  assert.deepEqual([beparams, hvparams], [{ memoryMiB: 1024 }, { boot_order: 'disk' }]);
  assert.equal(nics[0]?.mac, 'auto');
});

test('batch-create creates nothing if the daemon refuses one entry', async (t) => {
  const before = daemon.refuse;
  t.after(() => (daemon.refuse = before));
  daemon.refuse = (opcode) =>
    'name' in opcode && opcode.name === 'web2'
      ? { status: 409, code: 'INSTANCE_EXISTS', message: 'it exists', hint: null, details: {} }
      : null;
  const { status, stderr } = await create([entry('web1'), entry('web2')]);
  assert.equal(status, 2);
  assert.match(stderr, /^stdin: entry 2 \(web2\): it exists \(INSTANCE_EXISTS\)$/m);
  assert.match(stderr, /error\[VALIDATION\]: 1 of 2 entries are refused; no instance was created/);
  assert.deepEqual(daemon.submitted, []);
});

test('batch-create names entry and key of every problem, and sends nothing', async () => {
  const { hypervisor, ...rest } = entry('web2');
  const { status, stderr } = await create([
    entry('web1'),
    { ...rest, hypervisor: `${hypervisor}x`, snode: 'node2', beparams: { maxmem: 'big' } },
    { ...entry('web1'), osparams_secret: { key: 7 } },
    { ...entry('web3'), disk_template: 'drbd', osparams_secret: { 'a b': 'hush-hush' } },
  ]);
  assert.equal(status, 2);
  for (const problem of [
    /stdin: entry 2 \(web2\): hypervisor: /,
    /entry 2 \(web2\): snode: disks have no replica/,
    /entry 2 \(web2\): beparams\.maxmem: expected MiB or a size/,
    /entry 3 \(web1\): instance_name: the same as in entry 1/,
    /entry 4 \(web3\): disk_template: /,
    /entry 4 \(web3\): osparams_secret\./,
  ])
    assert.match(stderr, problem);
  assert.doesNotMatch(stderr, /hush/);
  assert.deepEqual(daemon.submitted, []);
});

test('batch-create refuses a file that is no list of objects', async () => {
  for (const text of ['', '{', '[]', '{"instance_name": "web1"}', '["web1"]', '[{"__proto__": 1}]'])
    assert.equal((await create(text)).status, 2, text);
  assert.deepEqual(daemon.submitted, []);
});

test('batch-create continues after a failed job, and ends with status 1', async (t) => {
  const before = daemon.script;
  t.after(() => (daemon.script = before));
  const error = {
    ...{ code: 'SCRIPT_FAILED', message: 'that is why', hint: null, details: {}, logTail: [] },
    ...{ stage: null, phase: 'execution' as const },
  };
  daemon.script = (job) => [
    end(
      job.summary.includes('web1')
        ? { ...job, status: 'error', error }
        : { ...job, status: 'success' },
    ),
  ];
  const { status, stderr } = await create([entry('web1'), entry('web2')]);
  assert.equal(status, 1);
  assert.match(stderr, /^warning: web1: that is why \(SCRIPT_FAILED\)$/m);
  assert.match(stderr, /^error\[COMMAND_FAILED\]: 1 of 2 instance\(s\) could not be created$/m);
});

test('batch-create accepts a byte order mark, and names the line of a JSON error', async () => {
  const { status } = await create(`\uFEFF${JSON.stringify([entry('web1')])}`, '--dry-run');
  assert.equal(status, 0);
  const broken = await create('[\n{"osparams_secret": {"key": "hush-hush"}\n', '--dry-run');
  assert.match(broken.stderr, /^error\[VALIDATION\]: stdin: not valid JSON \(line \d\)$/m);
  assert.doesNotMatch(broken.stderr, /hush/);
});

test('batch-create shows the first problems of a file with thousands', async () => {
  const many = await create([
    ...[{}, {}, { instance_name: 'x'.repeat(100_000) }],
    ...Array.from({ length: 5000 }, () => ({})),
  ]);
  assert.equal(many.status, 2);
  assert.ok(many.stderr.length < 12_000, String(many.stderr.length));
  assert.match(many.stderr, /entry 1: instance_name: is missing;.* \d+ more problem\(s\)$/m);
  assert.doesNotMatch(many.stderr, /the same as/);
  daemon.dryRuns.splice(0);
});

test('batch-create calls its file an argument, not an option', async () => {
  const { stderr } = await runInProcess('gnt-instance', ['batch-create', '/none'], {
    root: daemon.root,
  });
  assert.match(stderr, /^error\[FILE_UNREADABLE\]: batch-create: \/none cannot be read/);
});

test('batch-create tells which jobs continue after an interrupt between two submissions', async (t) => {
  const before = daemon.refuse;
  t.after(() => (daemon.refuse = before));
  const listening: (() => void)[] = [];
  daemon.refuse = (opcode, isDryRun) => {
    if ('name' in opcode && opcode.name === 'web1' && !isDryRun) listening[0]?.();
    return null;
  };
  const { status, stderr } = await runInProcess('gnt-instance', ['batch-create', '-'], {
    root: daemon.root,
    input: JSON.stringify(['web1', 'web2', 'web3'].map(entry)),
    onStart: (interrupt) => void listening.push(interrupt),
  });
  assert.equal(status, 130);
  assert.match(stderr, /^these jobs continue: \d+\nnot submitted: web2, web3$/m);
  assert.equal(daemon.submitted.length, 1);
});

test('batch-create prints the ids first for --print-jobid', async () => {
  const { stdout } = await create([entry('web1'), entry('web2')], '--print-jobid');
  assert.match(stdout, /^\d+\n\d+\n$/);
});
