import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { isAppError } from '#shared/errors/app-error.ts';
import {
  type BootContent,
  readBootContent,
} from '../../../../cluster-cli/commands/bootenv/read-content.ts';
import { locateFailure } from '../../../../cluster-cli/commands/bootenv/locate-content.ts';
import { CommandFailure } from '../../../../cluster-cli/failures/failure.ts';
import { createValueSource } from '../../../../cluster-cli/values/value-source.ts';

async function folderOf(t: TestContext, files: Record<string, string | Buffer>): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'gnt-content-'));
  t.after(() => rm(dir, { recursive: true, force: true }));
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(dir, name)), { recursive: true });
    await writeFile(join(dir, name), text);
  }
  return dir;
}

const read = (...paths: string[]): BootContent => readBootContent(paths, createValueSource());
const BOOT_ENV = 'Name: rescue\nOS:\n  Name: debian-12\n';

test('a folder as dr-provision lays it out is read, and what means nothing here is told', async (t) => {
  const dir = await folderOf(t, {
    'bootenvs/rescue.yaml': `${BOOT_ENV}OnlyUnknown: true\n`,
    'bootenvs/local.yml': 'Name: local\nOS:\n  Name: local\n',
    'bootenvs/.rescue.yaml.swp': 'junk',
    'templates/seed.tmpl': '{{.Machine.Name}}\n',
    // Without a final newline, because other templates include it in a line.
    'templates/sub/kick.cfg': 'lang',
    'templates/named.yaml': 'ID: other.tmpl\nContents: |\n  text\n',
    'templates/cloud.yaml': '#cloud-config\nusers: []\n',
    'params/disk.json': '{"Name": "disk", "Schema": {"type": "string", "default": "vda"}}',
    'profiles/web.yaml':
      'Name: web\nParams:\n  change-stage/map: {}\n  size: 3\n  name: x\n  list: [1, "a"]\n',
    'tasks/install.yaml': 'Name: install\n',
    'meta.yaml': 'Name: pack\n',
    'README.md': 'For people.\n',
  });
  // Links are not followed.
  await symlink('/etc/passwd', join(dir, 'templates/passwd'));
  const content = read(dir);
  assert.deepEqual(
    content.bootEnvs.map(({ Name }) => Name),
    ['rescue'],
  );
  assert.deepEqual(
    content.templates.map(({ ID, Contents }) => [ID, Contents]),
    [
      ['cloud.yaml', '#cloud-config\nusers: []\n'],
      ['other.tmpl', 'text\n'],
      ['seed.tmpl', '{{.Machine.Name}}\n'],
      ['sub/kick.cfg', 'lang'],
    ],
  );
  assert.deepEqual(
    content.params.map(({ Name, Schema }) => [Name, Schema]),
    [['disk', { type: 'string', default: 'vda' }]],
  );
  assert.deepEqual(content.profiles, [
    {
      name: 'web',
      osParameters: { 'change-stage/map': '{}', size: '3', name: 'x', list: '[1,"a"]' },
    },
  ]);
  const told = content.leftOut.join('\n');
  assert.doesNotMatch(told, /README/);
  for (const word of ['tasks', 'meta.yaml', 'OnlyUnknown', 'local'])
    assert.match(told, new RegExp(word));
});

test('one file may hold one object, a list, or a bundle with sections', async (t) => {
  const bundle = {
    meta: { Name: 'pack' },
    sections: {
      bootenvs: { rescue: { Name: 'rescue', OS: { Name: 'debian-12' } } },
      templates: { 'a.tmpl': { ID: 'a.tmpl', Contents: 'x' } },
      stages: { s: {} },
    },
  };
  const dir = await folderOf(t, {
    'one.yaml': BOOT_ENV,
    'list.yaml': '- {ID: b.tmpl, Contents: y}\n- {Name: p, Schema: {type: integer}}\n',
    'bundle.json': JSON.stringify(bundle),
    'plain.tmpl': 'z\n',
  });
  assert.equal(read(join(dir, 'one.yaml')).bootEnvs[0]?.OS.Name, 'debian-12');
  const list = read(join(dir, 'list.yaml'), join(dir, 'plain.tmpl'));
  assert.deepEqual(
    list.templates.map(({ ID }) => ID),
    ['b.tmpl', 'plain.tmpl'],
  );
  assert.deepEqual(
    list.params.map(({ Name }) => Name),
    ['p'],
  );
  const packed = read(join(dir, 'bundle.json'));
  assert.deepEqual(
    packed.bootEnvs.map(({ Name }) => Name),
    ['rescue'],
  );
  assert.match(packed.leftOut.join(), /stages/);
});

test('what is wrong is told by its file and line', async (t) => {
  const cases: readonly (readonly [string, string, RegExp])[] = [
    ['field.yaml', `${BOOT_ENV}Colour: blue\n`, /field\.yaml:4: Colour: an unknown field/],
    ['arch.yaml', `${BOOT_ENV}  Kernel: vmlinuz\n`, /arch\.yaml:4: OS\.Kernel: an unknown field/],
    ['name.yaml', 'OS:\n  Name: x\nName: ../up\n', /name\.yaml:3: Name: not a BootEnv name/],
    ['kernel.yaml', `${BOOT_ENV}Kernel: /vmlinuz\n`, /kernel\.yaml:4: Kernel: not a path within/],
    ['syntax.yaml', 'Name: [\n', /syntax\.yaml:\d+: not valid YAML/],
    ['twice.yaml', 'Name: a\nName: b\n', /twice\.yaml:2: not valid YAML \(DUPLICATE_KEY\)/],
    ['what.yaml', 'Name: x\n', /what\.yaml:1: neither a BootEnv/],
    [
      'param.yaml',
      'Name: web\nParams:\n  a/b: 1\n  a/../b: 2\n',
      /param\.yaml:4: Params\.a\/\.\.\/b: /,
    ],
  ];
  const dir = await folderOf(
    t,
    Object.fromEntries(cases.map(([name, text]) => [name, text] as const)),
  );
  for (const [name, , message] of cases) {
    assert.throws(
      () => read(join(dir, name)),
      (error) => {
        assert.ok(isAppError(error, 'BOOTENV_INVALID'), `${name}: ${String(error)}`);
        assert.match(error.message, message);
        return true;
      },
    );
  }
  const cyclic = await folderOf(t, { 'x.yaml': `a: &a [${'*b, '.repeat(3)}]\n` });
  assert.throws(() => read(join(cyclic, 'x.yaml')), { code: 'BOOTENV_INVALID' });
  assert.throws(() => read(join(dir, 'none.yaml')), { code: 'FILE_UNREADABLE' });
});

test('an object of a folder that cannot be used is left out by its place, and the rest is taken', async (t) => {
  const dir = await folderOf(t, {
    'bootenvs/a.yaml': BOOT_ENV,
    'bootenvs/kernel.yaml': 'Name: k\nOS: {Name: k}\nKernel: ../wimboot\n',
    'bootenvs/arm64-install.yaml':
      'Name: arm64-install\nOS:\n  Name: a\nTemplates:\n  - {Name: i, ID: default-ipxe.tmpl, Path: x}\n',
    'bootenvs/syntax.yaml': 'Name: [\n',
    'templates/picture.png': Buffer.from([0x89, 0x50, 0xff]),
    'params/list.yaml': '- {Name: good, Schema: {}}\n- {Name: ../bad, Schema: {}}\n',
  });
  const { bootEnvs, params, leftOut } = read(dir);
  assert.deepEqual(
    bootEnvs.map(({ Name }) => Name),
    ['rescue'],
  );
  assert.deepEqual(
    params.map(({ Name }) => Name),
    ['good'],
  );
  for (const place of [
    /bootenvs\/kernel\.yaml:3: Kernel: not a path within an archive/,
    /bootenvs\/arm64-install\.yaml:2: BootEnv arm64-install has no Kernel for amd64/,
    /templates\/picture\.png is not UTF-8 text/,
    /bootenvs\/syntax\.yaml:\d+: not valid YAML/,
    /params\/list\.yaml:2: Name: not a parameter name/,
  ])
    assert.ok(
      leftOut.some((line) => place.test(line)),
      `${place}\n${leftOut.join('\n')}`,
    );
  const useless = await folderOf(t, { 'bootenvs/kernel.yaml': `${BOOT_ENV}Kernel: ../x\n` });
  assert.throws(() => read(useless), { code: 'BOOTENV_INVALID' });
});

test('a refusal that names a line of a template gets the file and its line', async (t) => {
  const dir = await folderOf(t, {
    'templates/plain.tmpl': 'a\n{{if}}\n',
    'templates/named.yaml': 'ID: named.tmpl\nContents: |\n  a\n  {{if}}\n',
    'bootenvs/rescue.yaml': `${BOOT_ENV}Templates:\n  - Name: x\n    Path: "{{if}}"\n    Contents: |\n      a\n      {{if}}\n`,
  });
  const { places } = read(dir);
  const failure = (details: object): unknown => {
    const fields = { code: 'BOOTENV_INVALID', message: 'why', hint: null, exitStatus: 2 } as const;
    const located = locateFailure(
      new CommandFailure({ ...fields, details: { ...details } }),
      places,
    );
    return located instanceof Error ? located.message.slice(dir.length + 1) : located;
  };
  const field = (part: string) => ({ bootEnv: 'rescue', field: ['Templates', 0, part] });
  assert.equal(failure({ template: 'plain.tmpl', line: 2 }), 'templates/plain.tmpl:2: why');
  assert.equal(failure({ template: 'named.tmpl', line: 2 }), 'templates/named.yaml:4: why');
  assert.equal(failure({ ...field('Contents'), line: 2 }), 'bootenvs/rescue.yaml:9: why');
  assert.equal(failure({ ...field('Path'), line: 1 }), 'bootenvs/rescue.yaml:6: why');
  assert.equal(
    failure({ bootEnv: 'rescue', field: ['BootParams'], line: 1 }),
    'bootenvs/rescue.yaml:1: why',
  );
  const other = new Error('another');
  assert.equal(locateFailure(other, places), other);
});
