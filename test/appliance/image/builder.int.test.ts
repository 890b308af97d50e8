import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { chooseAptSources } from '../../../appliance/image/apt-sources.ts';
import { encodeCpio } from '../../../appliance/image/cpio.ts';
import { installAppliance } from '../../../appliance/image/install-appliance.ts';
import { acquireLock } from '../../../appliance/image/lock.ts';
import { MANIFEST_NAME, verifyAppliance } from '../../../appliance/image/manifest.ts';
import { parseModulesDep, withDependencies } from '../../../appliance/image/modules.ts';
import type { ApplianceManifest } from '#shared/contract/appliance-manifest.ts';
import { isAppError } from '#shared/errors/app-error.ts';
import { SYSTEM_PATH } from '#shared/process/system-path.ts';

let directory = '';
before(() => {
  directory = mkdtempSync(join(tmpdir(), 'gnt-builder-'));
});
after(() => rmSync(directory, { recursive: true }));

/** Makes a directory like an appliance, with a few bytes in each file. */
function makeAppliance(name: string, rootBytes: string): string {
  const path = join(directory, name);
  mkdirSync(path);
  const file = (fileName: string, bytes: string): ApplianceManifest['kernel'] => {
    writeFileSync(join(path, fileName), bytes);
    return {
      name: fileName,
      sizeBytes: bytes.length,
      sha256: createHash('sha256').update(bytes).digest('hex'),
    };
  };
  const manifest: ApplianceManifest = {
    version: 1,
    inputsHash: 'a'.repeat(64),
    architecture: 'x86_64',
    kernelVersion: '6.1.0',
    sourceDate: '2026-01-01T00:00:00.000Z',
    kernelArguments: 'quiet',
    emulatedKernelArguments: '',
    memoryMiB: 512,
    kernel: file('vmlinuz', 'kernel'),
    initrd: file('initrd.img', 'initrd'),
    root: file('root.squashfs', rootBytes),
    packages: ['bash=5'],
    hooks: [],
  };
  writeFileSync(join(path, MANIFEST_NAME), JSON.stringify(manifest));
  return path;
}

test("prefers the host's Debian mirror, in either format, and leaves out third-party archives", () => {
  const deb822 = {
    name: '/etc/apt/sources.list.d/debian.sources',
    text: `Types: deb
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By: /usr/share/keyrings/x.gpg

# a comment
Types: deb deb-src
URIs: http://mirror.example/security
Suites: bookworm-security
Components: main

Types: deb
URIs: https://vendor.example/node
Suites: nodistro
Components: main
`,
  };
  const wanted = [
    'deb http://mirror.example/debian bookworm main',
    'deb http://mirror.example/debian bookworm-updates main',
    'deb http://mirror.example/security bookworm-security main',
  ];
  assert.deepEqual(chooseAptSources([deb822]), wanted);
  const oneLine = {
    name: '/etc/apt/sources.list',
    text: `deb [signed-by=/k.gpg] http://mirror.example/debian bookworm main contrib # here
deb http://mirror.example/debian bookworm-updates main
deb-src http://elsewhere.example/debian bookworm main
deb http://mirror.example/security bookworm-security main
deb https://vendor.example cloud-sdk-bookworm main
`,
  };
  assert.deepEqual(chooseAptSources([oneLine]), wanted);
  assert.throws(() => chooseAptSources([]), { code: 'HOST_PREREQUISITE' });
});

test('writes an initramfs that cpio unpacks, the same bytes each time', () => {
  const make = (): Buffer =>
    encodeCpio(
      ['bin'],
      [
        { path: 'bin/tool', mode: 0o755, data: Buffer.from('odd') },
        { path: 'init', mode: 0o644, data: Buffer.alloc(5000, 1) },
      ],
    );
  assert.deepEqual(make(), make());
  const unpacked = join(directory, 'cpio');
  mkdirSync(unpacked);
  execFileSync('cpio', ['-id', '--quiet'], { cwd: unpacked, input: make() });
  assert.equal(readFileSync(join(unpacked, 'bin/tool'), 'utf8'), 'odd');
  assert.equal(statSync(join(unpacked, 'bin/tool')).mode & 0o777, 0o755);
  assert.equal(statSync(join(unpacked, 'init')).size, 5000);
});

test('selects modules by name or directory with their dependencies', () => {
  const table = parseModulesDep(
    'kernel/net/virtio_net.ko: kernel/net/failover.ko kernel/v/virtio.ko\nkernel/net/failover.ko:\nkernel/v/virtio.ko:\nkernel/crypto/a-b.ko:\nkernel/x/other.ko:\n',
  );
  assert.deepEqual(withDependencies(table, ['virtio_net', 'a_b']), [
    'kernel/crypto/a-b.ko',
    'kernel/net/failover.ko',
    'kernel/net/virtio_net.ko',
    'kernel/v/virtio.ko',
  ]);
  assert.deepEqual(withDependencies(table, ['kernel/crypto/']), ['kernel/crypto/a-b.ko']);
});

test('a changed file, a missing file, a missing manifest and a malformed manifest have different errors', async () => {
  const path = makeAppliance('damaged', 'root');
  await verifyAppliance(path);
  writeFileSync(join(path, 'root.squashfs'), 'r00t');
  await assert.rejects(
    verifyAppliance(path),
    (error) => isAppError(error, 'APPLIANCE_CORRUPT') && error.message.includes('root.squashfs'),
  );
  rmSync(join(path, 'root.squashfs'));
  await assert.rejects(
    verifyAppliance(path),
    (error) => isAppError(error, 'APPLIANCE_CORRUPT') && error.message.includes('root.squashfs'),
  );
  const manifest = JSON.parse(readFileSync(join(path, MANIFEST_NAME), 'utf8')) as object;
  for (const [changes, message] of [
    [{ memoryMiB: 'much' }, /not a manifest: memoryMiB: /],
    [{ kernel: {} }, /not a manifest: kernel\.name: /],
    [{ kernelVersion: '6.1\u001b[2J' }, /: kernelVersion: contains control characters$/],
    [{ kernelArguments: 'quiet\nmore' }, /: kernelArguments: contains control characters$/],
    [{ '\u001b[2J': 1 }, /not a manifest: unknown field$/],
  ] as const) {
    writeFileSync(join(path, MANIFEST_NAME), JSON.stringify({ ...manifest, ...changes }));
    await assert.rejects(verifyAppliance(path), { code: 'APPLIANCE_CORRUPT', message });
  }
  writeFileSync(join(path, MANIFEST_NAME), '{}');
  await assert.rejects(verifyAppliance(path), (error) => isAppError(error, 'APPLIANCE_CORRUPT'));
  rmSync(join(path, MANIFEST_NAME));
  await assert.rejects(verifyAppliance(path), (error) => isAppError(error, 'APPLIANCE_MISSING'));
});

test('installs a whole directory, replaces a damaged appliance, and removes the rest of a killed installation', async () => {
  const cached = makeAppliance('cached', 'root');
  const target = join(directory, 'var/appliance');
  mkdirSync(join(directory, 'var/.appliance.new-999999'), { recursive: true });
  await installAppliance(cached, target);
  await verifyAppliance(target);
  assert.deepEqual(readdirSync(join(directory, 'var')), ['appliance']);
  rmSync(join(target, 'vmlinuz'));
  writeFileSync(join(target, 'vmlinuz'), 'broken');
  await installAppliance(cached, target);
  await verifyAppliance(target);
  assert.deepEqual(readdirSync(join(directory, 'var')), ['appliance']);
  // Killed after the new one had its place: only the old one remains.
  mkdirSync(join(directory, 'var/.appliance.old-999999'));
  await installAppliance(cached, target);
  assert.deepEqual(readdirSync(join(directory, 'var')), ['appliance']);
});

test('a second process waits for the lock until its holder is killed', async () => {
  const path = join(directory, 'lock');
  const signal = new AbortController().signal;
  const script = `import { acquireLock } from ${JSON.stringify(import.meta.resolve('../../../appliance/image/lock.ts'))};
    await acquireLock(${JSON.stringify(path)}, { onWait: () => {}, signal: new AbortController().signal });
    console.log('held'); setInterval(() => {}, 1000);`;
  const holder = spawn(process.execPath, ['--input-type=module-typescript', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(holder.stdout, 'data');
  const waited = Promise.withResolvers<undefined>();
  const second = acquireLock(path, { onWait: () => waited.resolve(undefined), signal });
  await waited.promise;
  holder.kill('SIGKILL');
  await (await second).release();
});

test('a process that handles Ctrl-C keeps its lock', async (t) => {
  const path = join(directory, 'lock-of-a-terminal');
  const script = `import { acquireLock } from ${JSON.stringify(import.meta.resolve('../../../appliance/image/lock.ts'))};
    process.on('SIGINT', () => console.log('cleaning up'));
    await acquireLock(${JSON.stringify(path)}, { onWait: () => {}, signal: new AbortController().signal });
    console.log('held'); setInterval(() => {}, 1000);`;
  const holder = spawn(process.execPath, ['--input-type=module-typescript', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
  });
  t.after(() => holder.kill('SIGKILL'));
  await once(holder.stdout, 'data');
  process.kill(-Number(holder.pid), 'SIGINT');
  await once(holder.stdout, 'data');
  const waited = Promise.withResolvers<'waits'>();
  const second = acquireLock(path, {
    onWait: () => waited.resolve('waits'),
    signal: new AbortController().signal,
  });
  assert.equal(await Promise.race([waited.promise, second.then(() => 'has it')]), 'waits');
  holder.kill('SIGKILL');
  await (await second).release();
});

test('the command fails with status 1 for a missing appliance, and with status 2 for a wrong option', () => {
  const main = join(import.meta.dirname, '../../../appliance/main.ts');
  const run = (...args: string[]): { status: number | null; stderr: string; stdout: string } =>
    spawnSync(process.execPath, ['--disable-warning=ExperimentalWarning', main, ...args], {
      encoding: 'utf8',
      env: { PATH: process.env['PATH'], GNT_ROOT: join(directory, 'nothing') },
    });
  const info = run('info');
  assert.equal(info.status, 1);
  assert.match(
    info.stderr,
    /^error\[APPLIANCE_MISSING\]: .*\nhint: Build it: gnt-appliance build\n$/,
  );
  const usage = run('build', '--nonsense');
  assert.equal(usage.status, 2);
  assert.match(usage.stderr, /^error\[USAGE\]: unknown option '--nonsense'/);
  const help = run('build', '--help');
  assert.equal(help.status, 0);
  assert.match(help.stdout, /--progress-json/);
});

test('a build on a host that lacks a required program is refused by its name', () => {
  const main = join(import.meta.dirname, '../../../appliance/main.ts');
  for (const [command, debianPackage] of [
    ['lz4', 'lz4'],
    ['strip', 'binutils'],
    ['mmdebstrap', 'mmdebstrap'],
  ] as const) {
    const cache = join(directory, `empty-cache-${command}`);
    // In its own mounts, where the command cannot run.
    const hide = `mount --bind /dev/null "$(readlink -f "$(command -v ${command})")" && exec "$@"`;
    const { status, stderr } = spawnSync(
      'unshare',
      ['--mount', 'sh', '-c', hide, 'sh', process.execPath, main, 'build'],
      {
        encoding: 'utf8',
        env: { PATH: SYSTEM_PATH, GNT_ROOT: join(directory, 'no-root'), GNT_CACHE: cache },
      },
    );
    const told = new RegExp(`^error\\[HOST_PREREQUISITE\\]: this host lacks ${command}, .*$`, 'm');
    assert.match(stderr, told);
    assert.match(stderr, new RegExp(`^hint: apt-get install ${debianPackage}$`, 'm'));
    assert.equal(status, 2);
    assert.deepEqual(readdirSync(cache), ['appliance.lock']);
  }
});
