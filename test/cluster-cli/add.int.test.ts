import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import type { OpcodeOf } from '#shared/contract/opcode.ts';
import { end } from './support/daemon-stand-in.ts';
import { createAddLab, SECRET } from './support/add-lab.ts';
import { runInProcess } from './support/run-in-process.ts';
import { runProgram } from './support/run-program.ts';
import { sampleInstance } from './support/samples.ts';

const lab = createAddLab();
const add = lab.add;

function submitted(): OpcodeOf<'INSTANCE_CREATE'> {
  const [opcode] = lab.daemon.submitted;
  assert.equal(opcode?.opcode, 'INSTANCE_CREATE');
  return opcode;
}

test('every option of add arrives in the opcode as it was meant', async () => {
  const result = await add([
    ...['-o', 'debian+bookworm', '--os-image', '/img/disk.qcow2'],
    ...['--os-image-checksum', `sha256:${'A'.repeat(64)}`, '--os-image-grow=no'],
    ...['-O', 'a=1,b=x\\,y,no_c', '-O', 'd', '--os-parameters-private', 'p=private'],
    ...['--os-parameters-secret', `s=@${lab.folder}/secret`, '-c', 'yes'],
    ...['--personalization-package', 'http://h/x.tar.gz', '--personalization-user', 'u'],
    ...['--personalization-password', `@${lab.folder}/secret`, '--enable-safe-install=yes'],
    ...['--install-parameters', 'cdrom_image_path=/iso,boot_order=cdrom'],
    ...['--hooks', `${lab.folder}/config.yaml`, '--hooks', `@${lab.folder}/binary`],
    ...['--user-data', `${lab.folder}/binary`, '--vendor-data', `${lab.folder}/script.sh`],
    ...['--network-config', `${lab.folder}/config.yaml`, '--ssh-key', `${lab.folder}/key.pub`],
    ...['--metadata', 'role=web,zone=z', '--seed-disk=no', '--dialects', 'ganeti,ec2'],
    ...['--metadata-token', 'required', '--disk', '1:size=1G', '--disk', '0:size=512,name=root'],
    ...['-B', 'memory=1G,vcpus=2', '-H', 'kvm:accel=tcg,kernel_path=/k'],
    ...['--net', '0:mac=52:54:00:AA:BB:CC,mode=user', '-n', 'node1', '--tags', 'a,b', '--no-start'],
    'web1.example.com',
  ]);
  assert.equal(result.stderr.includes('error'), false, result.stderr);
  assert.equal(result.status, 0);
  assert.deepEqual(submitted(), {
    opcode: 'INSTANCE_CREATE',
    name: 'web1.example.com',
    osType: 'debian+bookworm',
    osImage: '/img/disk.qcow2',
    osImageChecksum: `sha256:${'a'.repeat(64)}`,
    osImageGrow: false,
    personalizationPackage: 'http://h/x.tar.gz',
    personalizationUser: 'u',
    personalizationPassword: SECRET,
    safeInstall: true,
    installParameters: { cdrom_image_path: '/iso', boot_order: 'cdrom' },
    // As bytes, because the host never parses hooks.
    hooks: [
      {
        name: 'config.yaml',
        content: Buffer.from('#cloud-config\nruncmd: [ls]\n').toString('base64'),
      },
      { name: 'binary', content: Buffer.from([0, 255, 1, 254]).toString('base64') },
    ],
    osParameters: { a: '1', b: 'x,y', c: 'False', d: 'True' },
    osParametersPrivate: { p: 'private' },
    osParametersSecret: { s: SECRET },
    start: false,
    communication: true,
    userData: Buffer.from([0, 255, 1, 254]).toString('base64'),
    vendorData: Buffer.from('#!/bin/sh\necho hi\n').toString('base64'),
    networkConfig: Buffer.from('#cloud-config\nruncmd: [ls]\n').toString('base64'),
    sshKeys: ['ssh-ed25519 AAAA me@host'],
    metadata: { role: 'web', zone: 'z' },
    tags: ['a', 'b'],
    seedDisk: false,
    dialects: ['ganeti', 'ec2'],
    metadataToken: 'required',
    diskTemplate: 'file',
    disks: [{ sizeBytes: 512 * 2 ** 20, name: 'root' }, { sizeBytes: 2 ** 30 }],
    nics: [{ mac: '52:54:00:aa:bb:cc', mode: 'user' }],
    beparams: { memoryMiB: 1024, vcpus: 2 },
    hvparams: { accel: 'tcg', kernel_path: '/k' },
    node: 'node1',
    install: true,
  });
});

test('a static address arrives with all that belongs to it, and a wrong one is refused by name', async () => {
  const net = '0:mode=user,ip=10.0.0.5/24;2001:db8::5/64,gateway=10.0.0.1,dns=9.9.9.9\\,1.1.1.1';
  await add(['--os-image', '/i', '--net', net, 'web1']);
  assert.deepEqual(submitted().nics?.[0], {
    mac: 'auto',
    mode: 'user',
    ip: '10.0.0.5',
    network: {
      addresses: ['10.0.0.5/24', '2001:db8::5/64'],
      gateways: ['10.0.0.1'],
      nameservers: ['9.9.9.9', '1.1.1.1'],
      search: [],
      routes: [],
      mtu: null,
    },
  });
  const wrong = await add([
    '--os-image',
    '/i',
    '--net',
    '0:ip=10.0.0.5/24,gateway=10.1.0.1',
    'web1',
  ]);
  assert.equal(wrong.status, 2);
  assert.match(wrong.stderr, /--net 0: gateway 10\.1\.0\.1 is not in 10\.0\.0\.5\/24/);
});

test('two files of user data arrive as one multi-part document', async () => {
  const args = [
    '--user-data',
    `${lab.folder}/config.yaml`,
    '--user-data',
    `${lab.folder}/script.sh`,
  ];
  await add([...args, '--os-image', '/i', 'web1']);
  const text = Buffer.from(submitted().userData ?? '', 'base64').toString();
  assert.match(text, /^Content-Type: multipart\/mixed; boundary="MIMEBOUNDARY"\n/);
  assert.match(text, /^Content-Type: text\/cloud-config$/m);
  assert.match(text, /^Content-Type: text\/x-shellscript$/m);
});

test('a secret from stdin arrives without its last newline, and is never printed', async () => {
  const result = await add(['--os-image', '/i', '--os-parameters-secret', 'pw=@-', 'web1'], {
    input: `${SECRET}\n`,
  });
  assert.deepEqual(submitted().osParametersSecret, { pw: SECRET });
  assert.equal(`${result.stdout}${result.stderr}`.includes(SECRET), false);
});

test('a secret in the command line works with a warning, and is wiped from the process title', async () => {
  let seen = '';
  lab.daemon.script = async function* (job) {
    const { readFile, readdir } = await import('node:fs/promises');
    for (const pid of await readdir('/proc')) {
      if (!/^\d+$/.test(pid) || Number(pid) === process.pid) continue;
      seen += await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    }
    yield end({ ...job, status: 'success' });
  };
  const args = ['add', '--os-image', '/i', '--os-parameters-secret', `pw=${SECRET}`, 'web1'];
  const result = await runProgram('gnt-instance', args, { root: lab.daemon.root });
  assert.equal(result.status, 0);
  assert.match(result.stderr, /^warning: other users can see the secret pw on the command line/m);
  assert.equal(seen.includes('gnt-instance add'), true);
  assert.equal(seen.includes(SECRET), false);
});

test('--no-install says that it disables startup, and does', async () => {
  const result = await add(['--no-install', '--submit', '-s', '1G', 'web1']);
  assert.match(result.stderr, /^No-installation mode selected, disabling startup$/m);
  assert.deepEqual([submitted().install, submitted().start], [false, false]);
});

test('hooks may come from stdin, and a file that is not there is told', async () => {
  const piped = await add(['--os-image', '/i', '--hooks', '-', 'web1'], { input: 'stages: {}' });
  assert.equal(piped.status, 0, piped.stderr);
  assert.deepEqual(submitted().hooks, [
    { name: 'stdin', content: Buffer.from('stages: {}').toString('base64') },
  ]);
  const missing = await add(['--os-image', '/i', '--hooks', '/none/x.yaml', 'web1']);
  assert.equal(missing.status, 2);
  assert.match(missing.stderr, /^error\[FILE_UNREADABLE\]: option --hooks: \/none\/x\.yaml/m);
});

test('--submit prints the job id and does not wait', async () => {
  lab.daemon.script = async function* () {
    await new Promise(() => undefined);
    yield* [];
  };
  const plain = await add(['--submit', '--os-image', '/i', 'web1']);
  assert.deepEqual([plain.status, plain.stdout], [0, 'JobID: 1\n']);
  const json = await add(['--submit', '--json', '--os-image', '/i', 'web1']);
  assert.deepEqual(JSON.parse(json.stdout), { id: 2 });
});

test('--dry-run submits nothing', async () => {
  const result = await add(['--dry-run', '--os-image', '/i', 'web1']);
  assert.equal(result.status, 0);
  assert.equal(lab.daemon.dryRuns.length, 1);
  assert.equal(lab.daemon.submitted.length, 0);
});

test('--wait-ready before the name waits until the guest is ready', async () => {
  lab.daemon.instances.push(sampleInstance({ name: 'web1' }));
  const result = await add(['--os-image', '/i', '--wait-ready', 'web1']);
  assert.equal(result.status, 0);
  assert.equal(submitted().name, 'web1');
  assert.match(result.stderr, /web1 is ready, 30\.0 s after its start/);
});

test('--wait-ready says at once that a guest cannot say that it is up', async () => {
  const running = { ...(sampleInstance().running ?? assert.fail()), readyAtMs: null };
  const ec2 = { datasource: 'Ec2', reason: 'DMI UUID and serial begin with ec2' };
  const cases: readonly (readonly [Parameters<typeof sampleInstance>[0], RegExp])[] = [
    [{ cloudInit: ec2 }, /EC2 datasource reads no vendor data/],
    [{ communication: false }, /channel is off/],
    [{ dialects: ['nocloud'] }, /dialect ganeti, .* is not served/],
    [
      { metadataToken: 'required', seedDisk: false },
      /session tokens are required, and cloud-init with NoCloud sends none/,
    ],
  ];
  for (const [fields, reason] of cases) {
    lab.daemon.instances.length = 0;
    lab.daemon.instances.push(sampleInstance({ name: 'web1', running, ...fields }));
    const startedAtMs = performance.now();
    const result = await add(['--os-image', '/i', '--wait-ready=600', 'web1']);
    assert.equal(result.status, 1);
    assert.match(
      result.stderr,
      /^error\[GUEST_NOT_READY\]: web1 runs, but cannot report that it is ready/m,
    );
    assert.match(result.stderr, reason);
    assert.ok(performance.now() - startedAtMs < 60_000);
  }
});

test('--wait-ready ends at once for user data that turns vendor data off, which add warns of', async () => {
  const document = join(lab.folder, 'silent.yaml');
  await writeFile(document, '#cloud-config\nvendor_data: {enabled: false}\n');
  const running = { ...(sampleInstance().running ?? assert.fail()), readyAtMs: null };
  lab.daemon.instances.push(sampleInstance({ name: 'web1', running }));
  const given = ['--os-image', '/i', '-C', 'yes', '--user-data', document];
  const result = await add([...given, '--wait-ready=600', 'web1']);
  assert.equal(result.status, 1);
  assert.match(result.stderr, /^warning: cloud-init will report no boot verdict: vendor_data in /m);
  assert.match(
    result.stderr,
    /^error\[GUEST_NOT_READY\]: web1 runs, but cannot report that it is ready: vendor_data in /m,
  );
  const reported = await add([...given, '-H', 'boot_report=user-data', 'web1']);
  assert.doesNotMatch(reported.stderr, /boot verdict/);
});

for (const [command, args] of [
  ['add', ['--os-image', '/i']],
  ['startup', []],
  ['reboot', []],
  ['reinstall', ['--force']],
] as const) {
  test(`${command} --wait-ready is status 1 with cloud-init's own errors when it failed`, async () => {
    const boot = {
      ...{ status: 'error' as const, stage: null, stages: [], recoverableErrors: [] },
      errors: ["('scripts-user', RuntimeError('Runparts: 1 failures'))\u001b[2J"],
    };
    lab.daemon.instances.push(sampleInstance({ name: 'web1', boot }));
    const result = await runInProcess('gnt-instance', [command, ...args, '--wait-ready', 'web1'], {
      root: lab.daemon.root,
    });
    assert.equal(result.status, 1);
    assert.match(
      result.stderr,
      /^error\[GUEST_BOOT_FAILED\]: cloud-init of web1 failed: \('scripts-user'/m,
    );
    assert.ok(!result.stderr.includes('\u001b'));
  });
}

test('--wait-ready waits for operational, and ends with the script that stranded the guest', async (t) => {
  t.after(() => lab.daemon.progress.splice(0));
  const lifecycle = {
    ...{ run: '11111111-1111-4111-8111-111111111111', kind: null, deadlineMs: null },
    ...{ script: 'boot/02-db', exitStatus: 7 },
  };
  const boot = {
    ...{ status: 'done' as const, stage: null, errors: [], recoverableErrors: [], stages: [] },
  };
  const reason = 'boot/02-db ended with status 7\u001b[2J';
  const at = (state: 'booting' | 'operational' | 'stranded') => ({
    ...lifecycle,
    ...{ state, reason: state === 'stranded' ? reason : null },
  });
  // cloud-init ends before the boot list does.
  lab.daemon.instances.push(sampleInstance({ name: 'web1', boot, lifecycle: at('booting') }));
  const wait = (): ReturnType<typeof runInProcess> =>
    runInProcess('gnt-instance', ['startup', '--wait-ready=60', 'web1'], { root: lab.daemon.root });
  const said = { isRunning: true, readyAtMs: 1, boot };
  lab.daemon.progress.push({ ...said, lifecycle: at('stranded') });
  const stranded = await wait();
  assert.equal(stranded.status, 1);
  assert.match(
    stranded.stderr,
    /^error\[SCRIPT_STRANDED\]: web1 is stranded: boot\/02-db ended with status 7/m,
  );
  assert.match(stranded.stderr, /^hint: gnt-instance audit web1 shows/m);
  assert.ok(!stranded.stderr.includes('\u001b'));
  lab.daemon.progress.splice(0, Infinity, { ...said, lifecycle: at('operational') });
  const up = await wait();
  assert.equal(up.status, 0, up.stderr);
  assert.match(up.stderr, /^web1 is operational$/m);
});

test('--wait-ready is content with a degraded boot, and says what was the matter', async () => {
  const boot = {
    ...{ status: 'degraded' as const, stage: null, errors: [], stages: [] },
    recoverableErrors: ['WARNING: no such module'],
  };
  lab.daemon.instances.push(sampleInstance({ name: 'web1', boot }));
  const result = await add(['--os-image', '/i', '--wait-ready', 'web1']);
  assert.equal(result.status, 0);
  assert.match(result.stderr, /warning: cloud-init of web1: WARNING: no such module/);
});

test('a degraded boot is a failed one for who says so, and only then', async () => {
  const boot = {
    ...{ status: 'degraded' as const, stage: null, errors: [], stages: [] },
    recoverableErrors: ['WARNING: no such module'],
  };
  lab.daemon.instances.push(sampleInstance({ name: 'web1', boot }));
  for (const command of ['startup', 'reboot'] as const) {
    const args = [command, '--wait-ready', '--degraded-fails', 'web1'];
    const result = await runInProcess('gnt-instance', args, { root: lab.daemon.root });
    assert.equal(result.status, 1);
    assert.match(
      result.stderr,
      /^error\[GUEST_BOOT_FAILED\]: cloud-init of web1 is degraded: WARNING: no such module$/m,
    );
  }
});

test('--wait-ready does not take the knock of a boot that is under way for its end', async () => {
  const boot = {
    ...{ status: 'running' as const, stage: 'modules-final' as const, errors: [], stages: [] },
    recoverableErrors: [],
  };
  lab.daemon.instances.push(sampleInstance({ name: 'web1', boot }));
  const result = await add(['--os-image', '/i', '--wait-ready=1', 'web1']);
  assert.equal(result.status, 1);
  assert.match(result.stderr, /^web1: cloud-init is at modules-final$/m);
  assert.match(result.stderr, /was not ready within 1 s.*: cloud-init is at modules-final/);
});

test('--wait-ready believes a line of the boot without asking for the instance again', async () => {
  const { running } = sampleInstance();
  assert.ok(running);
  lab.daemon.instances.push(
    sampleInstance({ name: 'web1', running: { ...running, readyAtMs: null } }),
  );
  const boot = {
    ...{ status: 'done' as const, stage: null, errors: [], recoverableErrors: [], stages: [] },
  };
  lab.daemon.progress.push({ isRunning: true, readyAtMs: 1, boot });
  const result = await add(['--os-image', '/i', '--wait-ready=60', 'web1']);
  assert.equal(result.status, 0, result.stderr);
  assert.match(result.stderr, /^web1 is ready: cloud-init is done$/m);
});

test('--wait-ready ends with GUEST_NOT_READY and what is known when the time is over', async () => {
  const running = sampleInstance().running;
  assert.ok(running);
  lab.daemon.instances.push(
    sampleInstance({
      name: 'web1',
      running: { ...running, readyAtMs: null },
    }),
  );
  const result = await add(['--os-image', '/i', '--wait-ready=1', 'web1']);
  assert.equal(result.status, 1);
  assert.match(
    result.stderr,
    /^error\[GUEST_NOT_READY\]: web1 was not ready within 1 s.*: cloud-init has reported nothing$/m,
  );
  assert.match(
    result.stderr,
    /^hint: The instance keeps running: .*console web1.*without cloud-init/m,
  );
});
