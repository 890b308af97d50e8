import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
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
import { encodeCpio } from '../../../appliance/image/cpio.ts';
import { installAppliance } from '../../../appliance/image/install-appliance.ts';
import { describeFile, MANIFEST_NAME, verifyAppliance } from '../../../appliance/image/manifest.ts';
import { keepHooks, readOwnHooks } from '../../../appliance/image/own-hooks.ts';
import { readKeptHooks } from '#shared/files/read-kept-hooks.ts';

const VALID = 'stages: {install.pre: [{commands: [true]}]}\n';
let directory = '';
before(() => {
  directory = mkdtempSync(join(tmpdir(), 'gnt-own-hooks-'));
});
after(() => rmSync(directory, { recursive: true }));

let count = 0;
function folder(files: Readonly<Record<string, string>>): string {
  count += 1;
  const path = join(directory, `hooks-${count}`);
  mkdirSync(path);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(path, name), text);
  return path;
}

test('reads the documents of a folder in the order of their names, and no other files', async () => {
  const path = folder({ '20-b.yml': 'stages: {}', '10-a.yaml': VALID, 'notes.txt': 'mine' });
  assert.deepEqual(await readOwnHooks(path), [
    { name: '10-a.yaml', content: Buffer.from(VALID).toString('base64') },
    { name: '20-b.yml', content: Buffer.from('stages: {}').toString('base64') },
  ]);
});

const refused: readonly (readonly [string, () => string, string, RegExp])[] = [
  ['YAML that is none', () => folder({ 'x.yaml': 'a: [CANARY' }), 'VALIDATION', /x\.yaml: line 1: /],
  ['an unknown field', () => folder({ 'x.yaml': 'stages: {image: [{commadns: [CANARY]}]}' }), 'VALIDATION', /x\.yaml: stage image, step 1: .*"commadns"/],
  ['a name of other characters', () => folder({ 'a b.yaml': VALID }), 'VALIDATION', /a b\.yaml: not a document name/],
  ['a folder in place of a document', () => { const path = folder({}); mkdirSync(join(path, 'x.yaml')); return path; }, 'FILE_UNREADABLE', /x\.yaml/],
  ['a document of more than 1 MiB', () => folder({ 'x.yaml': `# ${'x'.repeat(1024 * 1024)}` }), 'FILE_UNREADABLE', /1 MiB/],
  ['more than 4 MiB', () => folder(Object.fromEntries(['a', 'b', 'c', 'd', 'e'].map((name) => [`${name}.yaml`, `# ${'x'.repeat(1000_000)}`]))), 'VALIDATION', /the limit is 4194304/],
  ['more than 64 documents', () => folder(Object.fromEntries(Array.from({ length: 65 }, (_, index) => [`${index}.yaml`, '']))), 'VALIDATION', /65 hook documents/],
  ['a folder without documents', () => folder({ 'x.yam': VALID }), 'VALIDATION', /holds no hook documents/],
  ['a folder that does not exist', () => join(directory, 'none'), 'FILE_UNREADABLE', /none: ENOENT/],
]; // prettier-ignore
for (const [what, makeFolder, code, message] of refused) {
  test(`refuses ${what} by name, before anything is built`, async () => {
    await assert.rejects(readOwnHooks(makeFolder()), (error: Error & { code?: string }) => {
      assert.equal(error.code, code);
      assert.match(error.message, message);
      assert.doesNotMatch(error.message, /CANARY/);
      return true;
    });
  });
}

test('keeps hooks for later builds with mode 0600, until they are removed', async () => {
  const path = join(directory, 'state/appliance-hooks.json');
  assert.deepEqual(await readKeptHooks(path, 'APPLIANCE_BUILD'), []);
  const hooks = [{ name: 'a.yaml', content: 'eA==' }];
  await keepHooks(path, hooks);
  assert.deepEqual(await readKeptHooks(path, 'APPLIANCE_BUILD'), hooks);
  assert.equal(statSync(path).mode & 0o777, 0o600);
  writeFileSync(path, '[');
  await assert.rejects(readKeptHooks(path, 'APPLIANCE_BUILD'), { code: 'APPLIANCE_BUILD' });
  await keepHooks(path, []);
  assert.deepEqual(readdirSync(join(directory, 'state')), []);
});

test('an appliance with hooks is the cached appliance with hooks appended to the initramfs and named in the manifest', async () => {
  const cached = join(directory, 'cached');
  const target = join(directory, 'var/appliance');
  mkdirSync(cached);
  const initrd = encodeCpio([], [{ path: 'init', mode: 0o755, data: Buffer.from('odd') }]);
  for (const [name, bytes] of Object.entries({
    vmlinuz: 'k',
    'initrd.img': initrd,
    'root.squashfs': 'r',
  }))
    writeFileSync(join(cached, name), bytes);
  const [kernel, initrdFile, root] = await Promise.all(
    ['vmlinuz', 'initrd.img', 'root.squashfs'].map((name) => describeFile(cached, name)),
  );
  // As written by builders before hooks existed.
  const manifest = {
    version: 1, inputsHash: 'a'.repeat(64), architecture: 'x86_64', kernelVersion: '6', sourceDate: '', kernelArguments: '', memoryMiB: 512,
    kernel, initrd: initrdFile, root, packages: [],
  }; // prettier-ignore
  writeFileSync(join(cached, MANIFEST_NAME), JSON.stringify(manifest));
  const hooks = await readOwnHooks(folder({ '10-a.yaml': VALID, '20-b.yaml': '' }));

  await installAppliance(cached, target, hooks);
  const installed = await verifyAppliance(target);
  assert.deepEqual(
    installed.hooks.map(({ name }) => name),
    ['10-a.yaml', '20-b.yaml'],
  );
  const bytes = readFileSync(join(target, 'initrd.img'));
  assert.deepEqual(bytes.subarray(0, initrd.length), initrd);
  const unpacked = join(directory, 'unpacked');
  mkdirSync(unpacked);
  execFileSync('cpio', ['-id', '--quiet'], { cwd: unpacked, input: bytes.subarray(initrd.length) });
  assert.equal(readFileSync(join(unpacked, 'hooks/10-a.yaml'), 'utf8'), VALID);
  const known = { emulatedKernelArguments: '', hooks: [] };
  assert.deepEqual(await verifyAppliance(cached), { ...manifest, ...known });

  await installAppliance(cached, target, hooks);
  assert.deepEqual(await verifyAppliance(target), installed);
  await installAppliance(cached, target);
  assert.deepEqual((await verifyAppliance(target)).hooks, []);
  assert.deepEqual(readFileSync(join(target, 'initrd.img')), initrd);
});

test('gnt-appliance refuses malformed hooks with status 2, and writes nothing', () => {
  const main = join(import.meta.dirname, '../../../appliance/main.ts');
  const root = join(directory, 'root');
  const args = ['build', '--hooks', folder({ 'x.yaml': '[' })];
  const end = spawnSync(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', main, ...args],
    {
      encoding: 'utf8',
      env: { PATH: process.env['PATH'], GNT_ROOT: root, GNT_CACHE: join(directory, 'cache') },
    },
  );
  assert.equal(end.status, 2, end.stderr);
  assert.match(
    end.stderr,
    /^error\[VALIDATION\]: hooks appliance\/x\.yaml: line 1: not valid YAML/,
  );
  assert.throws(() => statSync(root), { code: 'ENOENT' });
});
