import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import { DEFAULT_IPXE_ID } from '#shared/contract/boot-objects.ts';
import { type DaemonStandIn, end, startDaemonStandIn } from '../../support/daemon-stand-in.ts';
import { runInProcess } from '../../support/run-in-process.ts';

const PLAN = {
  bootEnv: 'rescue',
  script: '#!ipxe',
  source: null,
  kernel: null,
  initrds: [],
  leftOut: [],
  files: [],
};
let daemon: DaemonStandIn;
before(async () => {
  daemon = await startDaemonStandIn();
  daemon.answers.set('GET /v1/bootenvs', [
    {
      ...{ name: 'rescue', description: '', osName: 'debian-12', installs: false, isoFile: '' },
      ...{ isoUrl: '', templates: [], requiredParams: [], instances: [] },
      document: { Name: 'rescue', Meta: { a: 'x'.repeat(100) } },
    },
  ]);
  daemon.answers.set('GET /v1/boot-templates', [{ id: 'seed.tmpl', contents: 'a\n\nb\n' }]);
  daemon.answers.set('GET /v1/boot-params', [{ name: 'size', schema: { type: 'integer' } }]);
  daemon.answers.set('GET /v1/boot-archives', [
    { isoFile: 'b.iso', sha256: 'ab', sizeBytes: 9, bootEnvs: [] },
  ]);
});
after(() => daemon.close());
beforeEach(() => daemon.submitted.splice(0));

const gnt = (...args: string[]) => runInProcess('gnt-bootenv', args, { root: daemon.root });

function finishWith(result: unknown): void {
  daemon.script = (job) => [
    end({ ...job, status: 'success', endedAtMs: job.receivedAtMs, result }),
  ];
}

test('show prints the document of one object, in YAML or JSON', async () => {
  const bootEnv = await gnt('show', 'rescue');
  assert.equal(bootEnv.stdout, `Name: rescue\nMeta:\n  a: ${'x'.repeat(100)}\n`);
  const json = await gnt('show', 'rescue', '--json');
  assert.deepEqual(JSON.parse(json.stdout), { Name: 'rescue', Meta: { a: 'x'.repeat(100) } });
  assert.equal((await gnt('show', '--template', 'seed.tmpl')).stdout, 'a\n\nb\n');
  const template = await gnt('show', '--template', 'seed.tmpl', '--json');
  assert.deepEqual(JSON.parse(template.stdout), { ID: 'seed.tmpl', Contents: 'a\n\nb\n' });
  const param = await gnt('show', '--param', 'size', '--json');
  assert.deepEqual(JSON.parse(param.stdout), { Name: 'size', Schema: { type: 'integer' } });
});

test('show and remove require exactly one object, which exists', async () => {
  for (const args of [[], ['rescue', '--param', 'size'], ['--template', 'a', '--param', 'size']]) {
    const [shown, removed] = [await gnt('show', ...args), await gnt('remove', ...args)];
    assert.match(shown.stderr, /error\[USAGE\]/, args.join(' '));
    assert.match(removed.stderr, /error\[USAGE\]/, args.join(' '));
  }
  const wrong = await gnt('show', 'rescu');
  assert.match(wrong.stderr, /error\[BOOTENV_NOT_FOUND\]: boot environment 'rescu'/);
  assert.match(wrong.stderr, /Did you mean rescue\?/);
  assert.match((await gnt('show', '--param', 'zzzzz')).stderr, /param 'zzzzz' does not exist/);
  assert.match((await gnt('list', 'rescu')).stderr, /BOOTENV_NOT_FOUND/);
  const archive = await gnt('list-isos', 'a.iso');
  assert.match(archive.stderr, /error\[NOT_FOUND\]: archive 'a\.iso'/);
  assert.deepEqual(daemon.submitted, []);
});

test('remove names the object and its kind, and says so after the job only', async () => {
  finishWith(null);
  assert.match((await gnt('remove', 'rescue')).stderr, /^rescue removed$/m);
  assert.doesNotMatch((await gnt('remove', '--param', 'size', '--json')).stderr, /removed/);
  assert.doesNotMatch((await gnt('remove', '--template', 't', '--submit')).stderr, /removed/);
  assert.deepEqual(
    daemon.submitted.map((opcode) => 'object' in opcode && opcode.object),
    [
      { kind: 'bootEnv', name: 'rescue' },
      { kind: 'param', name: 'size' },
      { kind: 'template', name: 't' },
    ],
  );
});

test('add sends the content of files, and reports the result of the job', async () => {
  const write = async (name: string, text: string): Promise<string> => {
    const file = join(daemon.root, name);
    await writeFile(file, text);
    return file;
  };
  const params = [1, 2, 3, 4, 5].map((at) => ({ Name: `p${at}`, Schema: { type: 'string' } }));
  const content = {
    params: params.slice(0, 2),
    profiles: { web: { Name: 'web', Params: { size: 3 } } },
  };
  const bundle = await write('bundle.yaml', JSON.stringify({ sections: content }));
  finishWith({ alsoChanged: ['other'], missingTemplates: ['lost.tmpl'] });
  const added = await gnt('add', bundle);
  assert.equal(added.status, 0, added.stderr);
  assert.match(added.stderr, /^warning: BootEnvs that use a replaced template: other$/m);
  assert.match(added.stderr, /^warning: missing template: lost\.tmpl$/m);
  const ipxe = { templates: { [DEFAULT_IPXE_ID]: { ID: DEFAULT_IPXE_ID, Contents: 'x' } } };
  const replacing = await gnt('add', await write('ipxe.yaml', JSON.stringify({ sections: ipxe })));
  assert.match(replacing.stderr, /^warning: template default-ipxe\.tmpl is built in/m);
  const quiet = await gnt('add', bundle, '--json');
  assert.doesNotMatch(quiet.stderr, /warning/);
  const nothing = await gnt('add', await write('empty.yaml', '{"sections": {}}'));
  assert.match(nothing.stderr, /error\[VALIDATION\]: nothing to add in /);
  assert.deepEqual(
    daemon.submitted.map((opcode) => opcode.opcode),
    ['BOOTENV_SET', 'BOOTENV_SET', 'BOOTENV_SET'],
  );
});

test('render prints each file, and names lost secrets and constant values', async () => {
  const file = { isSecretBearing: false, lostSecrets: [] };
  daemon.answers.set('GET /v1/instances/web1/boot-plan', {
    ...PLAN,
    source: { kind: 'archive', isoFile: 'a.iso' },
    kernel: 'vmlinuz',
    initrds: ['initrd'],
    leftOut: ['a stage'],
    constants: ['.ApiURL'],
    files: [
      { ...file, path: 'boot/seed', contents: 'text' },
      { ...file, path: 'boot/key', contents: null, lostSecrets: ['root-password'] },
    ],
  });
  const full = await gnt('render', 'rescue', 'web1');
  assert.equal(
    full.stdout,
    '==> boot/seed <==\ntext\n==> boot/key <==\n(needs the lost value of root-password)\n',
  );
  assert.match(full.stderr, /^warning: ignored: a stage$/m);
  assert.match(full.stderr, /^warning: constant values for \.ApiURL/m);
  assert.match(full.stderr, /^vmlinuz, initrd from the archive a\.iso$/m);
  daemon.answers.set('GET /v1/instances/web1/boot-plan', PLAN);
  const local = await gnt('render', 'rescue', 'web1');
  assert.deepEqual([local.stdout, local.stderr], ['', 'loads nothing\n']);
  const json = await gnt('render', 'rescue', 'web1', '--json');
  assert.deepEqual(JSON.parse(json.stdout), { ...PLAN, constants: [] });
  daemon.answers.set('GET /v1/instances/web1/boot-plan', {
    ...PLAN,
    source: { kind: 'repository', url: 'http://deb/' },
  });
  assert.equal((await gnt('render', 'rescue', 'web1')).stderr, 'files from http://deb/\n');
});

test('uploadiso takes a path from here, or leaves the source to the daemon', async () => {
  finishWith(null);
  const upload = await gnt('uploadiso', 'rescue', './some.iso');
  assert.match(upload.stderr, /^archive of rescue unpacked on this node$/m);
  assert.doesNotMatch((await gnt('uploadiso', 'rescue', '--json')).stderr, /unpacked/);
  assert.match((await gnt('destroyiso', 'b.iso')).stderr, /^archive b\.iso removed/m);
  assert.doesNotMatch((await gnt('destroyiso', 'b.iso', '--submit')).stderr, /removed/);
  assert.deepEqual(
    daemon.submitted.map(({ opcode, ...rest }) => ({ opcode, ...('source' in rest && rest) })),
    [
      { opcode: 'BOOTENV_UPLOAD_ISO', bootEnv: 'rescue', source: join(process.cwd(), 'some.iso') },
      { opcode: 'BOOTENV_UPLOAD_ISO' },
      { opcode: 'BOOTENV_DESTROY_ISO' },
      { opcode: 'BOOTENV_DESTROY_ISO' },
    ],
  );
});
