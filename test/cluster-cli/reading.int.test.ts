import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { z } from 'zod';
import { activeDisk, clusterInfo, doctorReport, nodeInfo, osInfo } from '#shared/contract/api.ts';
import { hookBook } from '#shared/contract/hook-book.ts';
import { instanceInfo } from '#shared/contract/instance.ts';
import { jobRecord } from '#shared/contract/job.ts';
import { type DaemonStandIn, end, startDaemonStandIn } from './support/daemon-stand-in.ts';
import { MIB } from '#shared/units/bytes.ts';
import { sampleJob } from '../lab/sample-job.ts';
import { sampleInstance, sampleOs } from './support/samples.ts';
import { runInProcess } from './support/run-in-process.ts';

let daemon: DaemonStandIn;
before(async () => {
  daemon = await startDaemonStandIn();
  daemon.instances.push(
    sampleInstance({ name: 'web10', hookNames: ['10-a.yaml', '20-b.yaml'] }),
    sampleInstance({ name: 'web2', running: null, status: 'ADMIN_down' }),
    sampleInstance({
      name: 'bad',
      running: null,
      status: 'install_failed',
      installState: 'failed',
      explanation: 'the installation failed: reinstall or remove it',
      install: {
        jobId: 9,
        state: 'failed',
        startedAtMs: 1000,
        endedAtMs: 4000,
        stage: 'os-scripts',
        error: { code: 'SCRIPT_FAILED', message: 'create ended with 3', hint: 'see the log' },
        stages: [{ stage: 'image', durationMs: 1500, summary: '5 MiB' }],
        logFile: '/var/log/gnt/bad.log',
      },
    }),
  );
  daemon.operatingSystems.push(
    sampleOs(),
    sampleOs({ name: 'hid', hidden: true, variants: [] }),
    sampleOs({ name: 'broken', valid: false, problem: "File 'create' is missing", variants: [] }),
  );
  // Submitted jobs end at once.
  daemon.script = (job) => {
    const ended = { ...job, status: 'success' as const, endedAtMs: job.receivedAtMs };
    daemon.jobs.splice(daemon.jobs.indexOf(job), 1, ended);
    return [end(ended)];
  };
  daemon.jobs.push(
    sampleJob({ id: 1, status: 'success', endedAtMs: Date.UTC(2026, 10, 21, 8, 0, 5) }),
    sampleJob({ id: 2, status: 'waiting', waitsFor: [1], summary: 'INSTANCE_REBOOT(web1)' }),
    sampleJob({ id: 4, status: 'waiting', waitsBecause: 'room on the node' }),
    sampleJob({
      id: 3,
      status: 'error',
      error: {
        code: 'SCRIPT_FAILED',
        message: 'create ended with 3',
        hint: 'see the log',
        phase: 'execution',
        stage: 'os-scripts',
        details: {},
        logTail: ['boom'],
      },
    }),
  );
});
after(() => daemon.close());

const gnt = (program: string, ...args: string[]) =>
  runInProcess(`gnt-${program}`, args, { root: daemon.root });

test('list is ordered by name as people count, and takes names, globs, filters and fields', async () => {
  const plain = await gnt('instance', 'list', '--no-headers', '-o', 'name');
  assert.equal(plain.stdout, 'bad\nweb2\nweb10\n');
  const named = await gnt('instance', 'list', '--no-headers', '-o', 'name', 'web2', 'bad');
  assert.equal(named.stdout, 'web2\nbad\n');
  const separated = await gnt(
    'instance',
    'list',
    '--separator',
    '|',
    '-o',
    'name,oper_ram',
    'web*',
  );
  assert.equal(separated.stdout, 'Instance|Memory\nweb10|1024\nweb2|-\n');
  const filtered = await gnt(
    'instance',
    'list',
    '--no-headers',
    '-o',
    'name',
    '-F',
    'not oper_state',
    '--sort',
    '-name',
  );
  assert.equal(filtered.stdout, 'web2\nbad\n');
});

test('list refuses a name that is not there, and suggests the nearest', async () => {
  const result = await gnt('instance', 'list', 'web3');
  assert.equal(result.status, 2);
  assert.equal(
    result.stderr,
    "error[INSTANCE_NOT_FOUND]: instance 'web3' does not exist\nhint: Did you mean web2?\n",
  );
});

test('every --json prints the types of the contract', async () => {
  const shapes: readonly (readonly [
    readonly [string, ...string[]],
    { parse: (value: unknown) => unknown },
  ])[] = [
    [['instance', 'list'], instanceInfo.array()],
    [['instance', 'info', 'web2'], instanceInfo],
    [['instance', 'info', '--all'], instanceInfo.array()],
    [['os', 'list'], osInfo.array()],
    [['os', 'info', 'debian'], osInfo],
    [['os', 'diagnose'], osInfo.extend({ node: z.string() }).array()],
    [['node', 'list'], nodeInfo.array()],
    [['node', 'info'], nodeInfo],
    [['node', 'doctor'], doctorReport],
    [['cluster', 'info'], clusterInfo],
    [['job', 'list'], jobRecord.array()],
    [['job', 'info', '2'], jobRecord],
  ];
  for (const [[program, ...args], shape] of shapes) {
    const result = await gnt(program, ...args, '--json');
    const value: unknown = JSON.parse(result.stdout);
    assert.deepEqual(shape.parse(value), value, `${program} ${args.join(' ')}`);
  }
});

test('info of a failed installation tells the stage, the error and what to do', async () => {
  const { stdout } = await gnt('instance', 'info', 'bad');
  assert.match(stdout, /^State: the installation failed: reinstall or remove it$/m);
  assert.match(stdout, /^Last installation: failed after 3\.0 s \(job 9\)$/m);
  assert.match(stdout, /^ {4}image: 1\.5 s, 5 MiB$/m);
  assert.match(stdout, /^ {2}failed in: os-scripts$/m);
  assert.match(stdout, /^ {2}error: SCRIPT_FAILED: create ended with 3$/m);
  assert.match(stdout, /^ {2}hint: see the log$/m);
});

test('info shows private values as <redacted>, and secrets and hooks by name', async () => {
  const { stdout } = await gnt('instance', 'info', 'web10');
  assert.match(stdout, /^ {4}license: <redacted>$/m);
  assert.match(stdout, /^ {2}secret OS parameters: password$/m);
  assert.match(stdout, /^ {2}hooks: 2 \(10-a\.yaml, 20-b\.yaml\)$/m);
  const all = await gnt('instance', 'info', '--all', 'web10');
  assert.match(all.stdout, /^ {2}cloud-init datasource: NoCloud/m);
});

test('hooks prints each step by stage with its document and the names of its fields, and nothing that a terminal obeys; --dry-run the same', async () => {
  assert.match((await gnt('instance', 'hooks', 'web10')).stdout, /^no hooks for web10$/m);
  daemon.hookBook = {
    stages: [
      {
        stage: 'before-install',
        steps: [
          { label: "step 'disk\u001b[2J'", file: 'cluster/10-a.yaml', fields: ['if', 'layout'] },
          { label: 'step 2', file: 'instance/b.yaml', fields: [] },
        ],
      },
    ],
    remarks: ['cluster/10-a.yaml: ignored, not for installations: stage boot'],
  };
  const expected = [
    'before-install:',
    "  cluster/10-a.yaml, step 'disk': if, layout",
    '  instance/b.yaml, step 2: -',
    '(cluster/10-a.yaml: ignored, not for installations: stage boot)',
    '',
  ];
  const { stdout } = await gnt('instance', 'hooks', 'web10');
  assert.deepEqual(stdout.split('\n'), expected);
  const asked = await gnt('instance', 'add', '--dry-run', '--os-image', '/i', 'web3');
  assert.ok(asked.stdout.endsWith(stdout));
  const json = await gnt('instance', 'hooks', '--json', 'web10');
  assert.deepEqual(hookBook.parse(JSON.parse(json.stdout)), daemon.hookBook);
  daemon.hookBook = { stages: [], remarks: [] };
});

test('info without a name is refused', async () => {
  const result = await gnt('instance', 'info');
  assert.deepEqual([result.status, result.stdout], [2, '']);
});

test('an instance that is not there is refused with the code of the daemon', async () => {
  const result = await gnt('instance', 'info', 'none');
  assert.equal(result.status, 2);
  assert.match(result.stderr, /^error\[INSTANCE_NOT_FOUND\]: there is no instance 'none'$/m);
});

test('gnt-os list leaves out what cannot or shall not be installed, and splits variants', async () => {
  assert.equal((await gnt('os', 'list')).stdout, 'Name\ndebian+bookworm\ndebian+trixie\n');
  assert.match((await gnt('os', 'list', '--all', '--no-headers')).stdout, /^hid$/m);
});

test('gnt-os list shows the nodes that differ, but to scripts, which want names', async () => {
  const other = sampleOs({ trust: { state: 'untrusted', digest: 'b', trustedAtMs: null } });
  daemon.otherNodesOs = [{ node: 'node2', operatingSystems: [other] }];
  try {
    const { stdout } = await gnt('os', 'list');
    assert.match(stdout, /^Name +Differing_nodes\ndebian\+bookworm node2 \(other content\)\n/);
    const bare = await gnt('os', 'list', '--no-headers');
    assert.equal(bare.stdout, 'debian+bookworm\ndebian+trixie\n');
    const asked = await gnt('os', 'list', '--no-headers', '-o', 'differing', 'debian+trixie');
    assert.equal(asked.stdout, 'node2 (other content)\n');
    daemon.otherNodesOs = [{ node: 'node2', silent: 'it is down' }];
    const silent = await gnt('os', 'list');
    assert.match(silent.stderr, /node node2 does not respond: it is down/);
  } finally {
    daemon.otherNodesOs = [];
  }
});

test('gnt-os diagnose says what is wrong and ends with status 1', async () => {
  const result = await gnt('os', 'diagnose');
  assert.equal(result.status, 1);
  assert.match(result.stdout, /^OS: debian \[global status: valid\] \[untrusted\]$/m);
  assert.match(
    result.stdout,
    /^OS: broken \[global status: invalid\] \[untrusted\]\n {2}Node node1: INVALID$/m,
  );
  assert.match(result.stdout, /problem: File 'create' is missing/);
});

test('gnt-os modify sends switches and parameters, and refuses to change nothing', async () => {
  await gnt('os', 'modify', '--trusted=yes', '-O', 'a=1,-b', 'debian');
  assert.deepEqual(daemon.submitted.at(-1), {
    opcode: 'OS_SET_PARAMS',
    name: 'debian',
    trusted: true,
    osParameters: { a: '1', b: null },
    osParametersPrivate: {},
  });
  const nothing = await gnt('os', 'modify', 'debian');
  assert.equal(nothing.status, 2);
  assert.match(
    nothing.stderr,
    /^error\[USAGE\]: At least one of OS parameters or hypervisor parameters must be passed$/m,
  );
});

test('a private value that is too short to be hidden in logs is named, and not shown', async () => {
  const short = await gnt(
    'os',
    'modify',
    '--os-parameters-private',
    'pin=7h5,lines=a1\nb2\nc3,key=long enough',
    'debian',
  );
  assert.match(short.stderr, /^warning: logs show these values .*: pin, lines$/m);
  assert.doesNotMatch(short.stderr, /7h5|a1|key/);
  const long = await gnt('os', 'modify', '--os-parameters-private', 'key=long enough', 'debian');
  assert.doesNotMatch(long.stderr, /too short/);
});

test('gnt-cluster init says that the cluster exists and sets what is given', async () => {
  const result = await gnt(
    'cluster',
    'init',
    '--install-timeout=60',
    '--max-image-size=200G',
    '--download-timeout=86400',
    '--min-download-rate=0',
    '--remote-hosts=images.lan,10.1.0.0/16',
    '--expose-service',
    'apt=80:10.0.0.1:8080',
  );
  assert.equal(result.status, 0);
  assert.match(result.stderr, /^cluster node1 exists: the first start of gnt-noded made it/m);
  assert.deepEqual(daemon.submitted.at(-1), {
    opcode: 'CLUSTER_SET_PARAMS',
    installTimeoutS: 60,
    maxImageBytes: 200 * 1024 ** 3,
    downloadTimeoutS: 86_400,
    minDownloadRate: 0,
    remoteHosts: ['images.lan', '10.1.0.0/16'],
    exposeServices: { apt: { port: 80, host: '10.0.0.1', hostPort: 8080 } },
    packageMirrors: {},
  });
});

test('gnt-cluster init under another name, or with another store, is refused', async () => {
  const other = await gnt('cluster', 'init', 'other');
  assert.equal(other.status, 2);
  assert.match(other.stderr, /^error\[CONFLICT\]: this node is in cluster node1, not other$/m);
  const store = await gnt('cluster', 'modify', '--store', 'redis://h');
  assert.match(
    store.stderr,
    /^error\[NOT_SUPPORTED\]: the store of a running node cannot be changed/m,
  );
});

test('gnt-node doctor ends with 0 when installs can work, warnings included, else with 1', async () => {
  daemon.report = {
    ok: true,
    findings: [{ check: 'kvm', level: 'warning', message: 'KVM hangs', hint: 'use tcg' }],
  };
  const warned = await gnt('node', 'doctor');
  assert.deepEqual(
    [warned.status, warned.stdout],
    [
      0,
      'warning kvm: KVM hangs\n        hint: use tcg\nthis node can install instances: 0 error(s), 1 warning(s)\n',
    ],
  );
  daemon.report = {
    ok: false,
    findings: [{ check: 'tun', level: 'error', message: 'no /dev/net/tun', hint: null }],
  };
  const failed = await gnt('node', 'doctor');
  assert.equal(failed.status, 1);
  assert.match(
    failed.stdout,
    /^error {3}tun: no \/dev\/net\/tun\nthis node cannot install instances/m,
  );
  daemon.report = { ok: true, findings: [] };
});

test('gnt-cluster verify counts instances that need someone', async () => {
  const result = await gnt('cluster', 'verify');
  assert.equal(result.status, 1);
  const line = /^error {3}instance bad: status: install_failed: the installation failed/m;
  assert.match(result.stdout, line);
});

test('gnt-cluster verify reports each node, and fails for a node that does not answer', async (t) => {
  t.after(() => {
    daemon.report = { ok: true, findings: [] };
    daemon.otherReports = [];
  });
  const check = (level: 'ok' | 'warning', name: string) => ({
    ...{ check: name, level, message: `${name} is ${level}`, hint: null },
  });
  daemon.report = { ok: true, findings: [check('ok', 'tun'), check('ok', 'kvm')] };
  const two = { node: 'node2', report: { ok: true, findings: [check('warning', 'swap')] } };
  const shut = { node: 'node3', silent: "node 'node3' is offline", isOffline: true };
  daemon.otherReports = [two, shut];
  const bad = daemon.instances.splice(0);
  t.after(() => daemon.instances.push(...bad));
  const clean = await gnt('cluster', 'verify');
  assert.equal(clean.status, 0, clean.stdout);
  assert.match(clean.stdout, /: 3 node\(s\), 0 instance\(s\)$/m);
  assert.match(clean.stdout, /^ok {6}node node1: doctor: 2 check\(s\) passed$/m);
  assert.match(clean.stdout, /^warning node node3: reachable: node 'node3' is offline$/m);
  assert.match(clean.stdout, /^0 error\(s\), 2 warning\(s\)$/m);
  daemon.otherReports = [two, { ...shut, silent: 'does not\nanswer', isOffline: false }];
  const coded = await gnt('cluster', 'verify', '--error-codes');
  assert.deepEqual(
    [coded.status, coded.stdout],
    [1, 'WARNING:swap:node:node2:swap is warning\nERROR:reachable:node:node3:does not answer\n'],
  );
  const { ok, findings } = JSON.parse((await gnt('cluster', 'verify', '--json')).stdout) as {
    readonly ok: boolean;
    readonly findings: readonly Readonly<Record<string, unknown>>[];
  };
  assert.deepEqual([ok, findings.length, findings[0]?.['name']], [false, 4, 'node1']);
});

test('gnt-job list says what waits for what', async () => {
  const result = await gnt('job', 'list', '2');
  assert.equal(
    result.stdout,
    'ID Status  Summary               Waits_for\n 2 waiting INSTANCE_REBOOT(web1) 1\n',
  );
  const why = await gnt('job', 'list', '--no-headers', '-o', 'waits_because', '4');
  assert.equal(why.stdout, 'room on the node\n');
  assert.match((await gnt('job', 'info', '4')).stdout, /Waiting for: room on the node/);
  const running = await gnt('job', 'list', '--running', '--no-headers', '-o', 'id');
  assert.equal(running.stdout, '2\n4\n');
});

test('gnt-job info tells the error of a job and where it happened', async () => {
  const { stdout } = await gnt('job', 'info', '3');
  assert.match(stdout, /^Job ID: 3$/m);
  assert.match(stdout, /^ {2}Error: SCRIPT_FAILED: create ended with 3$/m);
  assert.match(stdout, /^ {4}stage: os-scripts$/m);
  assert.match(stdout, /^ {4}log: boom$/m);
});

test('activate-disks prints a line for each disk as Ganeti does, and warns while the instance runs', async () => {
  const stopped = await gnt('instance', 'activate-disks', 'web2');
  const path = `/var/lib/gnt/disks/${sampleInstance().uuid}/disk0.raw`;
  assert.deepEqual(
    [stopped.status, stopped.stdout, stopped.stderr],
    [0, `node1:disk/0:${path}\n`, ''],
  );
  const running = await gnt('instance', 'activate-disks', 'web10');
  assert.match(running.stderr, /^warning: web10 is running/);
  const { stdout } = await gnt('instance', 'activate-disks', '--json', 'web2');
  assert.equal(activeDisk.array().parse(JSON.parse(stdout))[0]?.path, path);
  assert.equal((await gnt('instance', 'activate-disks', 'nobody')).status, 2);
});

test('replace-token has the tokens of that instance replaced', async () => {
  const { status, stderr } = await gnt('instance', 'replace-token', 'web10');
  assert.deepEqual([status, daemon.tokensReplaced], [0, ['web10']]);
  assert.match(stderr, /must request new ones/);
});

test('a list of all that is known may be longer than any one answer', async (t) => {
  const large = await startDaemonStandIn();
  t.after(() => large.close());
  const names = Array.from({ length: 35 }, (_, index) => `large${index}`);
  const explanation = 'x'.repeat(2 * MIB);
  large.instances.push(...names.map((name) => sampleInstance({ name, explanation })));
  const list = async (...args: string[]) =>
    runInProcess('gnt-instance', ['list', ...args], { root: large.root });
  const { stdout, stderr } = await list('--json');
  assert.equal(stderr, '');
  assert.ok(stdout.length > 64 * MIB);
  assert.deepEqual(
    instanceInfo.array().parse(JSON.parse(stdout)).map(({ name }) => name),
    names,
  ); // prettier-ignore
  // A column that needs the instances' nodes.
  const shown = await list('--no-headers', '-o', 'name,boot');
  assert.equal(shown.stdout.trimEnd().split('\n').length, names.length);
});
