import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:https';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { createLab, type Lab } from '../../scripts/demo/lab.ts';
import { disposeLab } from './support/end-lab.ts';
import { listenOnLoopback } from '../lab/listen-on-loopback.ts';
import { makeOwnAuthority } from '../lab/own-authority.ts';

/** Images by name with the real programs, a daemon, and a server with a private CA. */
let lab: Lab;
let site = '';
let certFile = '';
let folder = '';
const web = new Map<string, string>();
let closeServer = async (): Promise<void> => undefined;

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

before(async () => {
  lab = await createLab('gnt-images');
  folder = join(lab.paths.root, 'files');
  await mkdir(folder, { recursive: true });
  const tls = await makeOwnAuthority(folder);
  ({ certFile } = tls);
  const server = createServer(tls, (request, response) => {
    const found = web.get(request.url ?? '');
    response.writeHead(found === undefined ? 404 : 200).end(found);
  });
  closeServer = async () => {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  };
  site = `https://127.0.0.1:${await listenOnLoopback(server)}`;
  web.set('/images.yaml', 'images: [{name: site/base, url: base.img, checksums: SUMS, user: me}]');
  web.set('/SUMS', `${sha256('one')}  base.img\n`);
  await lab.startNode();
});

after(async () => {
  await closeServer();
  await disposeLab(lab);
});

async function must(
  program: 'gnt-image' | 'gnt-instance' | 'gnt-cluster',
  ...args: readonly string[]
): Promise<string> {
  const { status, stdout, stderr } = await lab.run(program, args);
  assert.equal(status, 0, stderr);
  return stdout + stderr;
}

test('a catalogue of an own authority is added once that is trusted, and its image by name', async () => {
  const refused = await lab.run('gnt-image', ['add', 'site', `${site}/images.yaml`]);
  assert.equal(refused.status, 1);
  assert.match(refused.stderr, /error\[DOWNLOAD_FAILED\]: .*self-signed/);
  assert.match(refused.stderr, /hint: .*gnt-cluster modify --image-ca @FILE/);
  await must('gnt-cluster', 'modify', '--image-ca', `@${certFile}`);
  const added = await must('gnt-image', 'add', 'site', `${site}/images.yaml`);
  assert.match(added, /catalogue site: 1 image for the architecture/);
  const list = await must('gnt-image', 'list', '--no-headers', '--separator=|', 'site/base');
  assert.match(list, /^site\/base\|site\|me\|.*\|no\|/);
  const plain = ['add', '--no-install', '--os-image', 'site/base', '-s', '64M'];
  await must('gnt-instance', ...plain, 'web1.example.com');
  const info = JSON.parse(
    (await lab.run('gnt-instance', ['info', '--json', 'web1.example.com'])).stdout,
  ) as { osImage: string; osImageChecksum: string };
  assert.deepEqual(
    [info.osImage, info.osImageChecksum],
    [`${site}/base.img`, `sha256:${sha256('one')}`],
  );
  // A later checksum of the publisher is used.
  web.set('/SUMS', `${sha256('two')}  base.img\n`);
  await must('gnt-instance', ...plain, 'web2.example.com');
  const shown = await must('gnt-image', 'info', 'site/base');
  assert.match(shown, new RegExp(`Checksum: sha256:${sha256('two')}`));
  assert.match(shown, /Login user: me/);
});

test('what is imported is there under its name, before what is built in', async () => {
  await writeFile(join(folder, 'disk.img'), 'three');
  await must(
    'gnt-image',
    'import',
    join(folder, 'disk.img'),
    '--name',
    'debian/12',
    '--user',
    'me',
  );
  const list = await must(
    'gnt-image',
    'list',
    '--no-headers',
    '-o',
    'name,user,cached',
    'debian/12',
  );
  assert.match(list, /^debian\/12 +me +yes\n$/);
  assert.match(await must('gnt-image', 'list'), /built-in:debian\/12 /);
  const kept = await lab.run('gnt-image', ['remove', 'debian/12']);
  assert.deepEqual([kept.status, /-f/.test(kept.stderr)], [2, true], kept.stderr);
  const plain = ['add', '--no-install', '--os-image', 'debian/12', '-s', '64M'];
  await must('gnt-instance', ...plain, 'web3.example.com');
  const removed = await must('gnt-image', 'remove', '-f', 'debian/12');
  assert.match(
    removed,
    /the file of debian\/12 stays for the next installation of web3\.example\.com/,
  );
  assert.doesNotMatch(await must('gnt-image', 'list'), /built-in:/);
  const info = await must('gnt-instance', 'info', '--json', 'web3.example.com');
  const { osImage } = JSON.parse(info) as { osImage: string };
  assert.equal(await readFile(osImage, 'utf8'), 'three');
});

test('what launch takes by default is set for all, shown, and taken back', async () => {
  const chosen = ['--default-size', '12G', '--default-memory', '700M', '--default-vcpus', '2'];
  await must('gnt-cluster', 'modify', ...chosen, '--default-net', 'mode=bridged,link=br0');
  await must('gnt-cluster', 'modify', '--default-vcpus', 'default');
  const info = await must('gnt-cluster', 'info', '--json');
  assert.deepEqual((JSON.parse(info) as { launchDefaults: object }).launchDefaults, {
    ...{ diskBytes: 12 * 1024 ** 3, memoryMiB: 700, net: 'mode=bridged,link=br0' },
  });
  for (const wrong of [
    ['--default-net', 'speed=9'],
    ['--default-vcpus', 'x'],
    ['--default-size', '2'],
  ]) {
    const { status, stderr } = await lab.run('gnt-cluster', ['modify', ...wrong]);
    assert.equal(status, 2, stderr);
  }
  assert.match(await must('gnt-cluster', 'info'), /NIC of launch: mode=bridged,link=br0/);
});

test('what has no such name is refused with the nearest, before anything is made', async () => {
  for (const [image, hint] of [
    ['debain/12', /Did you mean debian\/12\?/],
    ['disk.img', /Write a local file as \.\/NAME/],
  ] as const) {
    const { status, stderr } = await lab.run('gnt-instance', [
      ...['add', '--os-image', image, '-s', '64M', 'no.example.com'],
    ]);
    assert.equal(status, 2, stderr);
    assert.match(
      stderr,
      new RegExp(`^error\\[IMAGE_NOT_FOUND\\]: there is no image '${image}'`, 'm'),
    );
    assert.match(stderr, hint);
  }
  const { stdout } = await lab.run('gnt-instance', ['list', '--no-headers', '-o', 'name']);
  assert.doesNotMatch(stdout, /^no\./m);
});

test('what a killed daemon was writing of images and archives goes with the start of the next', async () => {
  const { importedImagesDir, bootArchivesDir } = lab.paths;
  await mkdir(bootArchivesDir, { recursive: true, mode: 0o700 });
  await mkdir(importedImagesDir, { recursive: true, mode: 0o700 });
  const before = [await readdir(importedImagesDir), await readdir(bootArchivesDir)];
  await lab.stopNode();
  // An incomplete copy, a copy without a record, and half a list of names.
  await writeFile(join(importedImagesDir, 'half-1'), 'a di');
  await writeFile(join(importedImagesDir, `sha256-${'0'.repeat(64)}`), 'a disk');
  await writeFile(join(bootArchivesDir, 'names.json.half-1'), '{');
  await lab.startNode();
  const after = [await readdir(importedImagesDir), await readdir(bootArchivesDir)];
  assert.deepEqual(after, before);
});
