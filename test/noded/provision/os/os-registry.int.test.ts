import assert from 'node:assert/strict';
import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { isAppError } from '#shared/errors/app-error.ts';
import { checkOsParameters, createOsRegistry } from '../../../../noded/provision/os/os-registry.ts';

const fixtures = join(import.meta.dirname, '../../../../fixtures/os');
const registry = createOsRegistry({ searchPath: ['/nonexistent', fixtures] });
let directory = '';
before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'gnt-os-'));
});
after(() => rm(directory, { recursive: true }));

const problemOf = async (name: string): Promise<string | null | undefined> =>
  (await registry.diagnose(name))?.problem;
const fails = (code: Parameters<typeof isAppError>[1], message: string) => (error: unknown) =>
  isAppError(error, code) && error.message === message && error.hint !== undefined;

test('tells which script runs where by where it lies', async () => {
  const both = (await registry.find('two-worlds')).definition;
  assert.deepEqual(both.hostScripts, { create: join(fixtures, 'two-worlds/create') });
  assert.deepEqual(both.applianceScripts, { create: 'untrusted/create' });

  const ganeti3 = (await registry.find('ganeti3-untrusted')).definition;
  assert.deepEqual(ganeti3.applianceScripts, { create: 'create_untrusted' });
  assert.deepEqual(Object.keys(ganeti3.hostScripts).sort(), [
    'export',
    'import',
    'rename',
    'verify',
  ]);
});

test('reads API versions, variants and parameters as Ganeti does', async () => {
  const { definition, variant } = await registry.find('flavoured+chocolate');
  assert.equal(variant, 'chocolate');
  assert.equal(definition.apiVersion, 20);
  assert.deepEqual(definition.apiVersions, [20, 15, 10]);
  assert.deepEqual(definition.variants, ['vanilla', 'chocolate']);
  assert.deepEqual(definition.parameters, [{ name: 'size', description: 'how large a scoop' }]);
  const old = (await registry.find('noop-api10')).definition;
  assert.equal(old.apiVersion, 10);
  assert.deepEqual(Object.keys(old.hostScripts).sort(), ['create', 'export', 'import', 'rename']);
});

test("names what is wrong with a definition in Ganeti's words", async () => {
  const at = (name: string): string => join(fixtures, name);
  assert.equal(
    await problemOf('broken-api-version-30'),
    `API version mismatch for path '${at('broken-api-version-30')}': found 30, want 20, 15, 10.`,
  );
  assert.match(
    (await problemOf('broken-api-version-words')) ?? '',
    /can't be converted to integer: 'twenty'/,
  );
  assert.equal(
    await problemOf('broken-api-version-missing'),
    `File 'ganeti_api_version' under path '${at('broken-api-version-missing')}' is missing (ENOENT)`,
  );
  assert.equal(
    await problemOf('broken-create-missing'),
    `A create script (trusted or untrusted) under path '${at('broken-create-missing')}' must exist`,
  );
  assert.equal(
    await problemOf('broken-create-not-executable'),
    `File 'create' under path '${at('broken-create-not-executable')}' is not executable`,
  );
  assert.equal(
    await problemOf('broken-untrusted-not-executable'),
    `File 'untrusted/create' under path '${at('broken-untrusted-not-executable')}' is not executable`,
  );
  assert.equal(
    await problemOf('broken-create-is-a-folder'),
    `File 'create' under path '${at('broken-create-is-a-folder')}' is not a regular file`,
  );
  assert.equal(
    await problemOf('broken-export-missing'),
    `File 'export' under path '${at('broken-export-missing')}' is missing (ENOENT)`,
  );
  assert.equal(
    await problemOf('broken-parameters-missing'),
    `File 'parameters.list' under path '${at('broken-parameters-missing')}' is missing (ENOENT)`,
  );
});

test('lists valid and broken definitions in order of their names', async () => {
  const all = await registry.list();
  const names = all.map(({ name }) => name);
  assert.deepEqual(names, [...names].sort());
  for (const { name, definition, problem } of all) {
    assert.equal(definition === null, name.startsWith('broken-'), name);
    assert.equal(problem !== null, name.startsWith('broken-'), name);
  }
  assert.ok(names.includes('hello') && names.includes('broken-api-version-30'));
});

test('refuses a definition that is not there or is broken, and names that are paths', async () => {
  await assert.rejects(
    registry.find('nowhere+x'),
    fails('OS_NOT_FOUND', 'Directory for OS nowhere not found in search path'),
  );
  await assert.rejects(registry.find('broken-create-missing'), (error) =>
    isAppError(error, 'OS_INVALID'),
  );
  for (const name of [
    '../os/hello',
    '..',
    '.',
    '',
    '/etc',
    'hello/untrusted',
    'a\0b',
    '-rf',
    '+x',
  ]) {
    await assert.rejects(registry.find(name), (error) => isAppError(error, 'OS_NOT_FOUND'), name);
    assert.equal(await registry.diagnose(name), undefined);
  }
});

test("refuses a wrong variant in Ganeti's words", async () => {
  await assert.rejects(
    registry.find('hello+big'),
    fails('OS_VARIANT', "OS 'hello' does not support variants ('big' passed)"),
  );
  await assert.rejects(
    registry.find('flavoured'),
    fails('OS_VARIANT', "OS name 'flavoured' must include a variant"),
  );
  await assert.rejects(
    registry.find('flavoured+mud'),
    fails('OS_VARIANT', "OS 'flavoured' does not support variant 'mud'"),
  );
  assert.equal((await registry.find('flavoured+mud', { forceVariant: true })).variant, 'mud');
});

test('refuses parameters that the definition does not list', async () => {
  const { definition } = await registry.find('hello');
  checkOsParameters(definition, ['owner', 'greeting']);
  assert.throws(
    () => checkOsParameters(definition, ['zeta', 'owner', 'alpha']),
    fails(
      'OS_PARAMETER',
      'The following parameters are not supported by the OS hello: alpha, zeta',
    ),
  );
});

test('the first directory of the search path wins, and the hidden one is told', async () => {
  const first = join(directory, 'first');
  await mkdir(join(first, 'hello'), { recursive: true });
  const both = createOsRegistry({ searchPath: [first, fixtures] });
  const diagnosis = await both.diagnose('hello');
  assert.equal(diagnosis?.path, join(first, 'hello'));
  assert.deepEqual(diagnosis.shadowed, [join(fixtures, 'hello')]);
  assert.ok(diagnosis.problem);
});

test('survives FIFOs, dangling links, loops and huge files in a definition', async () => {
  const quirky = join(directory, 'quirky');
  const make = async (name: string, files: Record<string, string>): Promise<string> => {
    const path = join(quirky, name);
    await mkdir(path, { recursive: true });
    for (const [file, text] of Object.entries({ ganeti_api_version: '10\n', ...files })) {
      await writeFile(join(path, file), text);
      await chmod(join(path, file), 0o755);
    }
    return path;
  };
  const scripts = { create: '', import: '', export: '', rename: '' };
  const local = createOsRegistry({ searchPath: [quirky] });
  const problem = async (name: string): Promise<string> =>
    (await local.diagnose(name))?.problem ?? 'valid';

  const dangling = await make('dangling', { import: '', export: '', rename: '' });
  await symlink('/nonexistent', join(dangling, 'create'));
  assert.match(await problem('dangling'), /File 'create' under path '.*' is missing \(ENOENT\)/);
  const loop = await make('loop', { import: '', export: '', rename: '' });
  await symlink('create', join(loop, 'create'));
  assert.match(await problem('loop'), /File 'create' under path '.*' is missing \(ELOOP\)/);
  await make('huge', { ...scripts, ganeti_api_version: '10\n'.repeat(100_000) });
  assert.match(await problem('huge'), /Error while reading the API version file .* larger than/);
  const device = await make('device', scripts);
  await rm(join(device, 'ganeti_api_version'));
  await symlink('/dev/zero', join(device, 'ganeti_api_version'));
  assert.match(await problem('device'), /'ganeti_api_version' .* is not a regular file/);
  const badVariant = await make('bad-variant', { ...scripts, ganeti_api_version: '15' });
  await writeFile(join(badVariant, 'variants.list'), 'ok\n../evil\n');
  assert.match(await problem('bad-variant'), /bad variant name '..\/evil'/);
  const linked = await make('linked', { ...scripts, ganeti_api_version: '15' });
  await writeFile(join(directory, 'variants-elsewhere'), 'default\n');
  await symlink(join(directory, 'variants-elsewhere'), join(linked, 'variants.list'));
  assert.equal(await problem('linked'), 'valid');
});
