import assert from 'node:assert/strict';
import { appendFile, mkdir, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { run } from '#shared/process/run.ts';
import { listImported, nameOf } from '../../../appliance/image/import.ts';
import { verifyAppliance } from '../../../appliance/image/manifest.ts';
import { createLab, type Lab, type ProgramName } from '../../../scripts/demo/lab.ts';
import { createImportLab } from './support/import-lab.ts';

const imports = await createImportLab();
after(() => imports[Symbol.asyncDispose]());
const { top, imported, makeFolder, bring, rootOf, leftovers } = imports;

test('a folder and its tar are imported, with only the files in the manifest', async () => {
  const folder = await makeFolder('tiny', 'root 1');
  await writeFile(join(folder, 'NOTES'), 'how it was made');
  await bring(folder, 'tiny');
  await verifyAppliance(join(imported, 'tiny'));
  const named = ['bzImage', 'init.cpio.gz', 'manifest.json', 'root.img'];
  assert.deepEqual((await readdir(join(imported, 'tiny'))).sort(), named);
  // Changes of the maker's files do not affect the import.
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
    await bring(tar, nameOf(tar, name));
    assert.deepEqual((await readdir(join(imported, name))).sort(), named);
  }
});

test('a damaged appliance is refused with its file, and the former appliance of the name stays', async () => {
  await bring(await makeFolder('good', 'root 2'), 'kept');
  const bad = await makeFolder('bad', 'root 3');
  await appendFile(join(bad, 'init.cpio.gz'), 'x');
  const isCorrupt = (pattern: RegExp) => ({ code: 'APPLIANCE_CORRUPT', message: pattern });
  await assert.rejects(
    bring(bad, 'kept'),
    isCorrupt(/cannot import .*init\.cpio\.gz: it has 7 bytes/),
  );
  await rm(join(bad, 'init.cpio.gz'));
  await assert.rejects(bring(bad, 'kept'), isCorrupt(/init\.cpio\.gz/));
  await rm(join(bad, 'manifest.json'));
  await assert.rejects(bring(bad, 'kept'), { code: 'APPLIANCE_MISSING' });
  await writeFile(join(top, 'junk.tar'), 'x'.repeat(2000));
  const junk = bring(join(top, 'junk.tar'), 'kept');
  await assert.rejects(junk, isCorrupt(/cannot import .*junk\.tar: Invalid tar header/));
  await assert.rejects(bring('/no/such', 'kept'), { code: 'FILE_UNREADABLE' });
  assert.equal(await rootOf('kept'), 'root 2');
  assert.deepEqual(await leftovers(), []);
  await bring(await makeFolder('better', 'root 4'), 'kept');
  assert.equal(await rootOf('kept'), 'root 4');
});

test('wrong names are refused, and the list shows intact and damaged appliances', async () => {
  assert.equal(nameOf('/x/busybox.tar.gz', undefined), 'busybox');
  for (const bad of ['../up', 'a/b', '.x', '', 'built', 'none'])
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

test('the commands import an appliance and use it in the cluster, and a damaged appliance is refused', async (t) => {
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
    /^error\[VALIDATION\]: appliance 'mine' cannot be used: no appliance in/m,
  );
  const taken = await appliance('import', await makeFolder('mine', 'root 6'));
  assert.equal(taken.status, 0, taken.stderr);
  const used = await appliance('use', 'mine');
  assert.equal(used.status, 0, used.stderr);
  assert.match((await appliance('list')).stdout, /^\* mine: intact, kernel 6\.12\.1$/m);
  assert.match((await lab.run('gnt-cluster', ['info'])).stdout, /^Appliance: mine$/m);
  assert.match(
    (await lab.run('gnt-node', ['doctor'])).stdout,
    /appliance: mine, used by the cluster: intact \(kernel 6\.12\.1\)/,
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
  assert.equal(add.status, 2);
  assert.match(
    add.stderr,
    /^error\[VALIDATION\]: appliance 'mine' \(from cluster\) cannot be used: .*root\.img has 7 bytes/m,
  );
  assert.equal((await lab.run('gnt-instance', ['info', 'a.example.com'])).status, 2);
  assert.equal((await appliance('use', 'built')).status, 0);
  assert.match((await lab.run('gnt-cluster', ['info'])).stdout, /^Appliance: built$/m);
});

test('an appliance of an OS or an instance cannot be removed, and a reinstall without it is refused', async (t) => {
  const lab: Lab = await createLab('gnt-appl-own');
  t.after(async () => {
    await lab.stopNode();
    const leftovers = await lab.findLeftovers();
    await lab.dispose();
    assert.deepEqual(leftovers, []);
  });
  const definition = join(lab.paths.root, 'srv/ganeti/os/plain');
  await mkdir(join(definition, 'untrusted'), { recursive: true });
  await writeFile(join(definition, 'ganeti_api_version'), '20\n');
  await writeFile(join(definition, 'parameters.list'), '');
  await writeFile(join(definition, 'untrusted/create'), '#!/bin/sh\n', { mode: 0o755 });
  await lab.startNode();
  const gnt = async (command: string, status = 0): Promise<string> => {
    const [program, ...args] = command.split(' ');
    // Each command begins with a program.
    const ended = await lab.run(program as ProgramName, args);
    assert.equal(ended.status, status, `${command}: ${ended.stderr}`);
    return status === 0 ? ended.stdout : ended.stderr;
  };
  const NAME = 'a.example.com';
  const appliance = async (): Promise<string | undefined> =>
    /^ *appliance: (.*)$/m.exec(await gnt(`gnt-instance info --all ${NAME}`))?.[1];
  for (const command of [
    'gnt-os modify --appliance one plain',
    `gnt-instance add --appliance one -o plain -s 8M --no-install ${NAME}`,
  ])
    assert.match(
      await gnt(command, 2),
      /\[VALIDATION\]: appliance 'one' cannot be used: no appliance in|\[VALIDATION\]: appliance 'one' \(from instance\) cannot be used: no appliance in/,
    );
  for (const name of ['one', 'two'])
    await gnt(`gnt-appliance import ${await makeFolder(`own-${name}`, name)} --name ${name}`);
  await gnt('gnt-os modify --appliance one plain');
  await gnt(`gnt-instance add -o plain -s 8M --no-install ${NAME}`);
  assert.equal(await appliance(), 'one (from os plain)');
  assert.match(await gnt('gnt-os info plain'), /^ +appliance: one$/m);
  await gnt(`gnt-instance modify --appliance two ${NAME}`);
  assert.equal(await appliance(), 'two (from instance)');
  assert.match(await gnt('gnt-appliance remove one', 2), /'one' is used by OS plain$/m);
  assert.match(await gnt('gnt-appliance remove two', 2), /'two' is used by instance a\.example/);
  const record = async (): Promise<unknown> =>
    JSON.parse(await gnt(`gnt-instance info --json ${NAME}`)) as unknown;
  const disk = lab.paths.disksDir;
  const before = [await record(), (await readdir(disk, { recursive: true })).sort()];
  await appendFile(join(lab.paths.importedAppliancesDir, 'two', 'root.img'), 'x');
  assert.match(
    await gnt(`gnt-instance reinstall ${NAME}`, 2),
    /appliance 'two' \(from instance\) cannot be used: .*root\.img has 4 bytes/,
  );
  assert.match(
    await gnt(`gnt-instance reinstall --appliance three ${NAME}`, 2),
    /appliance 'three'/,
  );
  assert.deepEqual([await record(), (await readdir(disk, { recursive: true })).sort()], before);
  await rm(join(lab.paths.importedAppliancesDir, 'two'), { recursive: true });
  const doctor = await lab.run('gnt-node', ['doctor']);
  assert.match(doctor.stdout, /appliance: two, used by instance a\.example\.com: no appliance in/);
  assert.match(doctor.stdout, /appliance: one, used by OS plain: intact/);
  await gnt(`gnt-instance modify --appliance none ${NAME}`);
  assert.equal(await appliance(), 'one (from os plain)');
  await gnt('gnt-os modify --appliance none plain');
  assert.equal(await appliance(), 'built');
  await gnt('gnt-appliance remove one');
  assert.match(
    await gnt('gnt-appliance remove one', 1),
    /this node has no imported appliance 'one'/,
  );
  assert.deepEqual(await readdir(lab.paths.importedAppliancesDir), ['.lock']);
});
