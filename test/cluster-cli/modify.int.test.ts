import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import { type DaemonStandIn, startDaemonStandIn } from './support/daemon-stand-in.ts';
import { runInProcess } from './support/run-in-process.ts';

let daemon: DaemonStandIn;
before(async () => {
  daemon = await startDaemonStandIn();
});
after(() => daemon.close());
beforeEach(() => daemon.submitted.splice(0));

/** Runs a command and returns the fields of its opcode. */
async function submit(program: string, ...args: string[]): Promise<Record<string, unknown>> {
  const result = await runInProcess(program, args, { root: daemon.root });
  assert.equal(result.status, 0, result.stderr);
  const [opcode] = daemon.submitted;
  assert.ok(opcode);
  return opcode;
}

test('modify resets parameters by default and by -key, and sets the others', async () => {
  const opcode = await submit(
    'gnt-instance',
    ...['modify', '-B', 'memory=default,vcpus=4', '-H', 'kvm:accel=kvm,-kernel_path'],
    ...['-H', 'kernel_args=default', '--install-parameters', '-cdrom_image_path,boot_order=disk'],
    ...['-O', '-color,size=default', '--os-parameters-private', '-licence'],
    ...['--os-parameters-secret', '-password', 'web1'],
  );
  assert.deepEqual(opcode['beparams'], { memoryMiB: null, vcpus: 4 });
  assert.deepEqual(opcode['hvparams'], { accel: 'kvm', kernel_path: null, kernel_args: null });
  assert.deepEqual(opcode['installParameters'], { cdrom_image_path: null, boot_order: 'disk' });
  assert.deepEqual(opcode['osParameters'], { color: null, size: null });
  assert.deepEqual(opcode['osParametersPrivate'], { licence: null });
  assert.deepEqual(opcode['osParametersSecret'], { password: null });
});

test('modify that only resets is a change', async () => {
  const opcode = await submit('gnt-instance', 'modify', '-B', '-memory', 'web1');
  assert.deepEqual(opcode['beparams'], { memoryMiB: null });
});

test("modify puts hooks in the place of the instance's own, and default takes them away", async () => {
  const folder = await mkdtemp(join(tmpdir(), 'gnt-modify-'));
  try {
    await writeFile(join(folder, '10-a.yaml'), 'stages: {}');
    const file = join(folder, '10-a.yaml');
    const opcode = await submit('gnt-instance', 'modify', '--hooks', file, 'web1');
    const content = Buffer.from('stages: {}').toString('base64');
    assert.deepEqual(opcode['hooks'], [{ name: '10-a.yaml', content }]);
  } finally {
    await rm(folder, { recursive: true });
  }
  daemon.submitted.splice(0);
  assert.deepEqual(
    (await submit('gnt-instance', 'modify', '--hooks', 'default', 'web1'))['hooks'],
    [],
  );
});

test('modify that only takes keys away is a change', async () => {
  const opcode = await submit('gnt-instance', 'modify', '--ssh-key', 'default', 'web1');
  assert.deepEqual(opcode['sshKeys'], []);
});

for (const command of ['modify', 'reinstall']) {
  test(`${command} takes OS, image and package back by the word none`, async () => {
    const none = ['-o', 'none', '--os-image', 'none', '--personalization-package', 'none'];
    const opcode = await submit('gnt-instance', command, ...none, 'web1');
    const { osType, osImage, personalizationPackage } = opcode;
    assert.deepEqual([osType, osImage, personalizationPackage], [null, null, null]);
  });
}

test('add refuses to take back what a new instance does not have', async () => {
  const args = ['add', '--os-image', 'none', 'web1'];
  const { status, stderr } = await runInProcess('gnt-instance', args, { root: daemon.root });
  assert.equal(status, 2);
  assert.match(stderr, /^error\[USAGE\]: --os-image none/m);
});

test('modify names the image of the next reinstallation, with what belongs to it', async () => {
  const image = ['--os-image', '/b.img', '--image-format', 'raw', '--os-image-grow', 'yes'];
  const opcode = await submit('gnt-instance', 'modify', ...image, 'web1');
  const { osImage, osImageFormat, osImageGrow } = opcode;
  assert.deepEqual([osImage, osImageFormat, osImageGrow], ['/b.img', 'raw', true]);
});

test('reinstall takes stored parameters back, by -key and by default', async () => {
  const opcode = await submit(
    'gnt-instance',
    ...['reinstall', '-f', '-O', '-color,size=big', '--os-parameters-private', 'licence=default'],
    ...['--os-parameters-secret', '-password', '--install-parameters', '-boot_order', 'web1'],
    ...['--hooks', 'default'],
  );
  assert.deepEqual(opcode['hooks'], []);
  assert.deepEqual(opcode['osParameters'], { color: null, size: 'big' });
  assert.deepEqual(opcode['osParametersPrivate'], { licence: null });
  assert.deepEqual(opcode['osParametersSecret'], { password: null });
  assert.deepEqual(opcode['installParameters'], { boot_order: null });
});

test('reinstall refuses an option beside its opposite, whichever comes last', async () => {
  for (const both of [
    ['--keep-old', '--no-keep-old'],
    ['--no-keep-old', '--keep-old'],
  ]) {
    const args = ['reinstall', '-f', ...both, 'web1'];
    const { status, stderr } = await runInProcess('gnt-instance', args, { root: daemon.root });
    assert.equal(status, 2);
    assert.match(
      stderr,
      /^error\[USAGE\]: '--(no-)?keep-old' and '--(no-)?keep-old' exclude each other$/m,
    );
    assert.deepEqual(daemon.submitted, []);
  }
});

test('one word takes back all that is stored for installations', async () => {
  for (const command of [['modify'], ['reinstall', '-f']]) {
    const args = [...command, '--install-parameters', 'none', 'web1'];
    const opcode = await submit('gnt-instance', ...args);
    const values = Object.entries(opcode['installParameters'] as object);
    assert.ok(values.length > 5 && values.every(([, value]) => value === null), String(values));
    assert.equal(values.filter(([key]) => key === 'initrd_path').length, 1);
  }
});

test('a new instance has nothing to reset: the default is what it gets', async () => {
  const opcode = await submit(
    'gnt-instance',
    ...[
      'add',
      '-o',
      'noop',
      '-B',
      'memory=default,vcpus=2',
      '-H',
      '-accel',
      '-O',
      '-color',
      'web1',
    ],
  );
  assert.deepEqual(opcode['beparams'], { vcpus: 2 });
  assert.deepEqual([opcode['hvparams'], opcode['osParameters']], [{}, {}]);
});

for (const removal of ['apt=', '-apt', 'apt=default']) {
  test(`gnt-cluster modify --expose-service ${removal} takes the service back`, async () => {
    const opcode = await submit('gnt-cluster', 'modify', '--expose-service', removal);
    assert.deepEqual(opcode['exposeServices'], { apt: null });
  });
}

test('gnt-cluster modify --expose-service takes a unix socket', async () => {
  const text = 'apt=3142:unix:/run/apt/guests.sock';
  const opcode = await submit('gnt-cluster', 'modify', '--expose-service', text);
  const apt = { port: 3142, socketPath: '/run/apt/guests.sock' };
  assert.deepEqual(opcode['exposeServices'], { apt });
});

test('gnt-cluster modify --expose-service takes UDP, with a host of either family, and TCP by name', async () => {
  const opcode = await submit(
    'gnt-cluster',
    ...['modify', '--expose-service', 'dns=53/udp:127.0.0.1:53'],
    ...['--expose-service', 'ntp=123/udp:[::1]:1123', '--expose-service', 'web=8080/tcp:web:80'],
  );
  assert.deepEqual(opcode['exposeServices'], {
    dns: { port: 53, host: '127.0.0.1', hostPort: 53, protocol: 'udp' },
    ntp: { port: 123, host: '::1', hostPort: 1123, protocol: 'udp' },
    web: { port: 8080, host: 'web', hostPort: 80 },
  });
});

for (const [text, words] of [
  ['dns=53/udp:unix:/run/dns.sock', 'a unix socket cannot receive UDP'],
  ['dns=53/sctp:127.0.0.1:53', "'dns=53/sctp:127.0.0.1:53' is not a service"],
  ['dns=0/udp:127.0.0.1:53', "'dns=0/udp:127.0.0.1:53' is not a service"],
  ['dns=53/udp:127.0.0.1', "'dns=53/udp:127.0.0.1' is not a service"],
  ['dns=/udp:127.0.0.1:53', "'dns=/udp:127.0.0.1:53' is not a service"],
] as const) {
  test(`gnt-cluster modify --expose-service ${text} is refused in the option's words`, async () => {
    const before = daemon.submitted.length;
    const refused = await runInProcess('gnt-cluster', ['modify', '--expose-service', text], {
      root: daemon.root,
    });
    assert.notEqual(refused.status, 0);
    assert.match(refused.stderr, /^error\[USAGE\]: option --expose-service: /m);
    assert.ok(refused.stderr.includes(words), refused.stderr);
    assert.match(refused.stderr, /^hint: Write .*dns=53\/udp:127\.0\.0\.1:53/m);
    assert.equal(daemon.submitted.length, before);
  });
}

test('gnt-cluster modify --package-mirror allows mirrors and takes them back', async () => {
  const url = 'http://deb.example.org/debian';
  const opcode = await submit(
    'gnt-cluster',
    ...['modify', '--package-mirror', `debian=${url}`, '--package-mirror', 'old='],
  );
  assert.deepEqual(opcode['packageMirrors'], { debian: url, old: null });
});

test('gnt-cluster init sets every option that it is given', async () => {
  const opcode = await submit(
    'gnt-cluster',
    ...['init', '--install-timeout', '600', '--host-scripts=no'],
    ...['--expose-service', 'apt=3142:127.0.0.1:3142', '--store', daemon.cluster.store],
  );
  const { installTimeoutS, hostScripts, exposeServices } = opcode;
  assert.deepEqual(
    [installTimeoutS, hostScripts, exposeServices],
    [600, false, { apt: { port: 3142, host: '127.0.0.1', hostPort: 3142 } }],
  );
});

test('what success of a medium is, and where the scripts of an OS run, is sent as it is given', async () => {
  const medium = ['--medium-success=poweroff', '--install-parameters', 'boot_order=cdrom:disk'];
  const added = await submit('gnt-instance', 'add', ...medium, 'web2');
  assert.deepEqual(
    [added['mediumSuccess'], added['installParameters']],
    ['poweroff', { boot_order: 'cdrom:disk' }],
  );
  daemon.submitted.splice(0);
  const modified = await submit('gnt-instance', 'modify', '--medium-success=report', 'web1');
  assert.equal(modified['mediumSuccess'], 'report');
  daemon.submitted.splice(0);
  const os = await submit('gnt-os', 'modify', '--safe-install', 'required', 'debian');
  assert.equal(os['safeInstall'], 'required');
});

test('a time limit is sent as it is given: for the instance, taken back, for one command', async () => {
  const sent = async (program: string, ...args: string[]): Promise<unknown> => {
    daemon.submitted.splice(0);
    return (await submit(program, ...args))['installTimeoutS'];
  };
  const limit = ['--install-timeout', '60'];
  assert.equal(await sent('gnt-instance', 'modify', ...limit, 'web1'), 60);
  assert.equal(await sent('gnt-instance', 'modify', '--install-timeout', 'default', 'web1'), null);
  assert.equal(await sent('gnt-instance', 'rename', ...limit, 'web1', 'web2'), 60);
  assert.equal(await sent('gnt-backup', 'export', ...limit, 'web1'), 60);
  const wrong = ['modify', '--install-timeout', 'soon', 'web1'];
  const refused = await runInProcess('gnt-instance', wrong, { root: daemon.root });
  assert.equal(refused.status, 2);
  assert.match(refused.stderr, /'soon' is not a number of seconds/);
});

test('autostart takes a word, settings, or both, and sends what was given', async () => {
  const given = ['--autostart', 'no', '--autostart', 'priority=10,delay=30'];
  const opcode = await submit('gnt-instance', 'modify', ...given, 'web1');
  assert.deepEqual(opcode['autostart'], { boot: false, priority: 10, delayS: 30 });
  daemon.submitted.splice(0);
  const other = ['--autostart', 'yes,restarts=5,lost_secrets=wait'];
  const second = await submit('gnt-instance', 'modify', ...other, 'web1');
  assert.deepEqual(second['autostart'], { boot: true, restarts: 5, lostSecrets: 'wait' });
  for (const wrong of ['maybe', 'priority=high', 'lost_secrets=never']) {
    const args = ['modify', '--autostart', wrong, 'web1'];
    assert.equal(
      (await runInProcess('gnt-instance', args, { root: daemon.root })).status,
      2,
      wrong,
    );
  }
});

test('NICs and disks are changed in the words of Ganeti, or in ours', async () => {
  const opcode = await submit(
    'gnt-instance',
    ...['modify', '--net', 'add:link=br1,mac=generate', '--net', '0:add,mode=user'],
    ...['--net', '1:modify,link=br2,ip=10.0.0.5/24,gateway=none', '--net', 'front:name=none'],
    ...['--net', '2:remove', '--net', 'remove', '--disk', 'add:size=1G,name=data'],
    ...['--add-disk', '2G', '--disk', 'data:modify,name=more', 'web1'],
  );
  assert.deepEqual(opcode['nics'], [
    { action: 'add', nic: { link: 'br1', mac: 'auto', mode: 'bridged' } },
    { action: 'add', at: 0, nic: { mac: 'auto', mode: 'user' } },
    {
      ...{ action: 'modify', which: 1 },
      changes: {
        link: 'br2',
        ip: '10.0.0.5',
        network: { addresses: ['10.0.0.5/24'], gateways: [] },
      },
    },
    { action: 'modify', which: 'front', changes: { name: null } },
    { action: 'remove', which: 2 },
    { action: 'remove', which: -1 },
  ]);
  assert.deepEqual(opcode['disks'], [
    { action: 'add', disk: { sizeBytes: 2 ** 30, name: 'data' } },
    { action: 'modify', which: 'data', changes: { name: 'more' } },
    { action: 'add', disk: { sizeBytes: 2 ** 31 } },
  ]);
});

test('a disk is removed without a question with --force only', async () => {
  const refused = await runInProcess('gnt-instance', ['modify', '--remove-disk', '1', 'web1'], {
    root: daemon.root,
  });
  assert.equal(refused.status, 2);
  assert.match(refused.stderr, /removes disk 1 of web1/);
  assert.deepEqual(daemon.submitted, []);
  const opcode = await submit('gnt-instance', 'modify', '-f', '--disk', '1:remove', 'web1');
  assert.deepEqual(opcode['disks'], [{ action: 'remove', which: 1 }]);
});
