import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import {
  appendFile,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { pack } from 'tar-stream';
import { collect } from '#shared/stream/collect.ts';
import { run } from '#shared/process/run.ts';
import { importAppliance, listImported, nameOf } from '../../../appliance/image/import.ts';
import { verifyAppliance } from '../../../appliance/image/manifest.ts';
import { createLab, type Lab } from '../../../scripts/demo/lab.ts';

let top = '';
let imported = '';
before(async () => {
  top = await mkdtemp(join(tmpdir(), 'gnt-import-'));
  imported = join(top, 'appliances');
});
after(() => rm(top, { recursive: true }));

/** The files of an appliance as somebody makes them by hand, whose root has these bytes. */
function filesOf(rootBytes: string): Record<string, string> {
  const contents = { bzImage: 'kernel', 'init.cpio.gz': 'initrd', 'root.img': rootBytes };
  const file = (name: keyof typeof contents) => ({
    name,
    sizeBytes: contents[name].length,
    sha256: createHash('sha256').update(contents[name]).digest('hex'),
  });
  const manifest = {
    ...{ version: 1, inputsHash: '0'.repeat(64), architecture: 'x86_64', kernelVersion: '6.12.1' },
    ...{
      sourceDate: '2026-01-01T00:00:00Z',
      kernelArguments: 'quiet',
      memoryMiB: 128,
      packages: [],
    },
    ...{ kernel: file('bzImage'), initrd: file('init.cpio.gz'), root: file('root.img') },
  };
  return { ...contents, 'manifest.json': JSON.stringify(manifest) };
}

async function makeFolder(name: string, rootBytes: string): Promise<string> {
  const folder = join(top, name);
  await mkdir(folder);
  for (const [file, bytes] of Object.entries(filesOf(rootBytes)))
    await writeFile(join(folder, file), bytes);
  return folder;
}

const rootOf = (name: string): Promise<string> =>
  readFile(join(imported, name, 'root.img'), 'utf8');

test('a folder and a tar of one are taken in, with the files that the manifest names alone', async () => {
  const folder = await makeFolder('tiny', 'root 1');
  await writeFile(join(folder, 'NOTES'), 'how it was made');
  await importAppliance(folder, 'tiny', imported);
  await verifyAppliance(join(imported, 'tiny'));
  const named = ['bzImage', 'init.cpio.gz', 'manifest.json', 'root.img'];
  assert.deepEqual((await readdir(join(imported, 'tiny'))).sort(), named);
  // What becomes of the maker's files is nothing to us.
  await appendFile(join(folder, 'root.img'), 'changed');
  await verifyAppliance(join(imported, 'tiny'));
  await rm(join(folder, 'root.img'));
  await writeFile(join(folder, 'root.img'), 'root 1');
  for (const [suffix, args] of [
    ['.tar', ['-cf']],
    ['.tar.gz', ['-czf']],
  ] as const) {
    const tar = join(top, `packed${suffix}`);
    await run('tar', ['-C', folder, ...args, tar, '.']);
    const name = `packed${args[0]}`.replace('-c', '').replace('f', '');
    await importAppliance(tar, nameOf(tar, name), imported);
    assert.deepEqual((await readdir(join(imported, name))).sort(), named);
  }
});

test('a damaged one is refused by the file, and what had its name stays', async () => {
  await importAppliance(await makeFolder('good', 'root 2'), 'kept', imported);
  const bad = await makeFolder('bad', 'root 3');
  await appendFile(join(bad, 'init.cpio.gz'), 'x');
  const isCorrupt = (pattern: RegExp) => ({ code: 'APPLIANCE_CORRUPT', message: pattern });
  await assert.rejects(
    importAppliance(bad, 'kept', imported),
    isCorrupt(/init\.cpio\.gz has 7 bytes/),
  );
  await rm(join(bad, 'init.cpio.gz'));
  await assert.rejects(importAppliance(bad, 'kept', imported), isCorrupt(/init\.cpio\.gz/));
  await rm(join(bad, 'manifest.json'));
  await assert.rejects(importAppliance(bad, 'kept', imported), { code: 'APPLIANCE_MISSING' });
  await writeFile(join(top, 'junk.tar'), 'x'.repeat(2000));
  const junk = importAppliance(join(top, 'junk.tar'), 'kept', imported);
  await assert.rejects(junk, isCorrupt(/junk\.tar cannot be taken in/));
  await assert.rejects(importAppliance('/no/such', 'kept', imported), isCorrupt(/\/no\/such/));
  assert.equal(await rootOf('kept'), 'root 2');
  assert.deepEqual(
    (await readdir(imported)).filter((name) => name.startsWith('.')),
    [],
  );
  await importAppliance(await makeFolder('better', 'root 4'), 'kept', imported);
  assert.equal(await rootOf('kept'), 'root 4');
});

test('a tar brings nothing to another place, by no name and by no link', async () => {
  const tar = pack();
  const path = join(top, 'sly.tar');
  for (const name of ['../escaped', '/tmp/gnt-escaped', 'a/../../escaped', '.hidden'])
    tar.entry({ name }, 'out');
  tar.entry({ name: 'root.img', type: 'symlink', linkname: '/etc/passwd' });
  for (const [name, bytes] of Object.entries(filesOf('root 5')))
    tar.entry({ name: `./${name}` }, bytes);
  tar.finalize();
  await writeFile(path, await collect(tar, 1e6));
  await importAppliance(path, 'sly', imported);
  assert.equal(await rootOf('sly'), 'root 5');
  assert.deepEqual(
    (await readdir(top)).filter((name) => name.includes('escaped')),
    [],
  );
  const twice = pack();
  for (const bytes of ['one', 'two']) twice.entry({ name: 'root.img' }, bytes);
  twice.finalize();
  await writeFile(path, await collect(twice, 1e6));
  await assert.rejects(importAppliance(path, 'sly', imported), { code: 'APPLIANCE_CORRUPT' });
});

test('names are folders of their own, and the list shows what is damaged', async () => {
  assert.equal(nameOf('/x/busybox.tar.gz', undefined), 'busybox');
  for (const bad of ['../up', 'a/b', '.x', '', 'built'])
    assert.throws(() => nameOf('/x/y', bad), { code: 'VALIDATION' }, bad);
  await appendFile(join(imported, 'tiny', 'root.img'), 'x');
  await symlink('/etc', join(imported, '.odd'));
  const listed = await listImported(imported);
  const [tiny] = listed.filter(({ name }) => name === 'tiny');
  assert.equal(tiny?.state, 'corrupt');
  assert.match(tiny?.detail ?? '', /root\.img has 7 bytes/);
  assert.ok(listed.some(({ name, state }) => name === 'kept' && state === 'intact'));
  assert.ok(listed.every(({ name }) => name !== '.odd'));
  assert.deepEqual(await listImported(join(top, 'none')), []);
});

test('by the commands it is taken in, used by the cluster, and refused once it is damaged', async (t) => {
  const lab: Lab = await createLab('gnt-appl');
  await lab.startNode();
  t.after(async () => {
    await lab.stopNode();
    const leftovers = await lab.findLeftovers();
    await lab.dispose();
    assert.deepEqual(leftovers, []);
  });
  const appliance = (...args: string[]) => lab.run('gnt-appliance', args);
  const unknown = await appliance('use', 'mine');
  assert.equal(unknown.status, 2);
  assert.match(
    unknown.stderr,
    /^error\[VALIDATION\]: appliance 'mine' cannot be used: there is no/m,
  );
  const taken = await appliance('import', await makeFolder('mine', 'root 6'));
  assert.equal(taken.status, 0, taken.stderr);
  const used = await appliance('use', 'mine');
  assert.equal(used.status, 0, used.stderr);
  assert.match((await appliance('list')).stdout, /^\* mine: intact, kernel 6\.12\.1$/m);
  assert.match((await lab.run('gnt-cluster', ['info'])).stdout, /^Appliance: mine$/m);
  assert.match(
    (await lab.run('gnt-node', ['doctor'])).stdout,
    /appliance: intact \(kernel 6\.12\.1\)/,
  );
  await appendFile(join(lab.paths.importedAppliancesDir, 'mine', 'root.img'), 'x');
  const image = join(lab.paths.root, 'an.img');
  await writeFile(image, Buffer.alloc(4096));
  const add = await lab.run('gnt-instance', [
    'add',
    '--os-image',
    image,
    '-s',
    '8M',
    'a.example.com',
  ]);
  assert.equal(add.status, 1);
  assert.match(add.stderr, /^error\[APPLIANCE_CORRUPT\]: .*root\.img has 7 bytes/m);
  assert.doesNotMatch(add.stderr, /building it/);
  assert.equal((await appliance('use', 'built')).status, 0);
  assert.match((await lab.run('gnt-cluster', ['info'])).stdout, /^Appliance: built$/m);
});
