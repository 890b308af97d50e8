import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { instanceInfo } from '#shared/contract/instance.ts';
import { run } from '#shared/process/run.ts';
import { createLab, type ProgramName } from '../../scripts/demo/lab.ts';
import { readOwnDocument } from './support/own-document.ts';
import { isFilledWith } from '../lab/is-filled.ts';

const NAME = 'own.example.com';

test('a busybox appliance built by the documented steps installs, and refuses an unsupported request', async (t) => {
  const lab = await createLab('gnt-own-appl');
  t.after(async () => {
    await lab.stopNode();
    const leftovers = await lab.findLeftovers();
    await lab.dispose();
    assert.deepEqual(leftovers, []);
  });
  const gnt = async (program: ProgramName, args: readonly string[], status = 0) => {
    const ended = await lab.run(program, args, { timeoutMs: 240_000 });
    assert.equal(ended.status, status, `${program} ${args.join(' ')}: ${ended.stderr}`);
    return status === 0 ? ended.stdout : ended.stderr;
  };
  const at = (name: string): string => join(lab.paths.root, name);

  // Any kernel, modules and busybox would do: the built appliance's are at hand.
  await gnt('gnt-appliance', ['build']);
  await mkdir(at('parts'));
  await run('cpio', [
    '-i',
    '-d',
    '--quiet',
    '-D',
    at('parts'),
    '-F',
    join(lab.paths.applianceDir, 'initrd.img'),
  ]);
  const modules = join(at('parts'), 'lib/modules');
  const [version = ''] = await readdir(modules);
  await mkdir(at('maker'));
  for (const [name, content] of await readOwnDocument())
    await writeFile(join(at('maker'), name), content);
  const kernel = join(lab.paths.applianceDir, 'vmlinuz');
  const busybox = join(at('parts'), 'bin/busybox');
  await run('sh', [at('maker/make-appliance'), kernel, join(modules, version), busybox, at('own')]);

  await lab.startNode();
  await gnt('gnt-appliance', ['import', at('own')]);
  // A boot sector's signature, and an end within a block.
  const image = randomBytes(3_000_001);
  image.writeUInt16LE(0xaa55, 510);
  await writeFile(at('disk.img'), image);
  const source = ['--os-image', at('disk.img')];
  await gnt('gnt-instance', [
    'add',
    '--appliance',
    'own',
    ...source,
    '-s',
    '8M',
    '--no-start',
    NAME,
  ]);
  const info = async () =>
    instanceInfo.parse(JSON.parse(await gnt('gnt-instance', ['info', '--json', NAME])));
  const { uuid, install, applianceInForce } = await info();
  assert.deepEqual(applianceInForce, { name: 'own', source: 'instance' });
  assert.deepEqual(install?.stages.map(({ stage }) => stage).slice(-5), [
    'wait-disks',
    'image',
    'unmount',
    'sync',
    'shutdown-appliance',
  ]);
  const folder = join(lab.paths.disksDir, uuid);
  const readDisk = async (): Promise<Buffer> => {
    const [name = '', ...more] = await readdir(folder);
    assert.deepEqual(more, []);
    return readFile(join(folder, name));
  };
  const disk = await readDisk();
  assert.ok(disk.subarray(0, image.length).equals(image));
  assert.ok(isFilledWith(0, disk.subarray(image.length)));

  // It reports unsupported requests, and the instance stays unchanged.
  const again = ['reinstall', '--force', '--no-start'];
  const refused = await gnt('gnt-instance', [...again, '--os-image-grow', 'yes', NAME], 1);
  assert.match(refused, /it does not do growing a file system/);
  assert.ok((await readDisk()).equals(disk));
  assert.equal((await info()).installState, 'installed');
});
