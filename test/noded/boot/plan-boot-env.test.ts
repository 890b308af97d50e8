import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { test } from 'node:test';
import { parse } from 'yaml';
import {
  bootEnvDocument,
  bootParam,
  foldBootEnv,
  type BootEnv,
  type BootParam,
} from '#shared/contract/boot-env.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { ErrorCode } from '#shared/errors/codes.ts';
import { Secret } from '#shared/secret/secret.ts';
import type { BootParameter, BootPlan, BootPlanInput } from '../../../noded/boot/boot-plan.ts';
import { planBootEnv } from '../../../noded/boot/plan-boot-env.ts';

const uuid = '3f0c8c6e-0000-4000-8000-000000000001';
const mac = 'aa:00:00:12:34:56';
const address = '169.254.10.20';
const baseUrl = 'http://169.254.169.254/ganeti/latest/boot';
const ipxe = { Name: 'ipxe', Path: '{{.Machine.MacAddr "ipxe"}}.ipxe', ID: 'default-ipxe.tmpl' };

const envOf = (parts: object): BootEnv =>
  foldBootEnv(
    bootEnvDocument.parse({ Name: 'test', OS: { Name: 'debian-12' }, Templates: [ipxe], ...parts }),
  ).bootEnv;
const publicly = (values: Readonly<Record<string, string>>): Map<string, BootParameter> =>
  new Map(Object.entries(values).map(([name, value]) => [name, { visibility: 'public', value }]));
const schemasOf = (schemas: Readonly<Record<string, object>>): Map<string, BootParam> =>
  new Map(
    Object.entries(schemas).map(([Name, parts]) => [Name, bootParam.parse({ Name, ...parts })]),
  );

function plan(bootEnv: object, parts: Partial<BootPlanInput> = {}): BootPlan {
  const parameters = parts.parameters ?? new Map<string, BootParameter>();
  return planBootEnv({
    machine: { name: 'web1.example.com', uuid, mac, address },
    bootEnv: envOf(bootEnv),
    templates: new Map(),
    schemas: new Map(),
    parameters,
    layers: [{ values: parameters }],
    archive: () => null,
    isAllowed: () => true,
    mirrorUrl: () => null,
    baseUrl,
    ...parts,
  });
}
const withText = (Contents: string): object => ({
  Templates: [ipxe, { Name: 'x', Path: '{{.Machine.Path}}/x', Contents }],
});
/** What a template makes. */
function rendered(text: string, parts: Partial<BootPlanInput> = {}, bootEnv: object = {}): unknown {
  const { files } = plan({ ...bootEnv, ...withText(text) }, parts);
  return files.find(({ path }) => path === `machines/${uuid}/x`)?.contents;
}
function refusal(code: ErrorCode, run: () => unknown): AppError {
  try {
    run();
  } catch (error) {
    assert.ok(error instanceof AppError, String(error));
    assert.equal(error.code, code, error.message);
    return error;
  }
  return assert.fail(`${code} was expected, and nothing was thrown`);
}

test('a BootEnv without a kernel has the firmware go on to the disk', () => {
  const { script, files, source, kernel } = plan({});
  assert.deepEqual([script, source, kernel], [`${mac}.ipxe`, null, null]);
  assert.deepEqual(
    files.map(({ path, contents }) => [path, contents]),
    [[`${mac}.ipxe`, '#!ipxe\nexit\n']],
  );
});

const bootable = {
  OS: {
    Name: 'debian-12',
    Codename: 'bookworm',
    SupportedArchitectures: {
      amd64: {
        IsoFile: 'd.tar.gz',
        Kernel: 'd/linux',
        Initrds: ['d/initrd.gz', 'more.cpio'],
        BootParams: 'auto url={{.Machine.Url}}/seed {{.Param "opts"}}',
      },
    },
  },
};
const opts = publicly({ opts: 'quiet' });
const opened = (...paths: readonly string[]): BootPlanInput['archive'] => {
  return (isoFile) => (isoFile === 'd.tar.gz' ? { has: (path) => paths.includes(path) } : null);
};

test('the built-in script names initrds on the line of the kernel, which EFI needs', () => {
  const { files, source, kernel, initrds } = plan(bootable, {
    parameters: opts,
    archive: opened('d/linux', 'd/initrd.gz', 'more.cpio'),
  });
  assert.deepEqual(source, { kind: 'archive', isoFile: 'd.tar.gz' });
  assert.deepEqual([kernel, initrds], ['d/linux', ['d/initrd.gz', 'more.cpio']]);
  const tree = `${baseUrl}/machines/${uuid}/boot`;
  assert.equal(
    files[0]?.contents,
    [
      '#!ipxe',
      'set tries:int32 0',
      ':load',
      `kernel ${tree}/d/linux initrd=initrd0 initrd=initrd1 auto url=${baseUrl}/machines/${uuid}/seed quiet BOOTIF=01-\${netX/mac:hexhyp} || goto again`,
      `initrd --name initrd0 ${tree}/d/initrd.gz || goto again`,
      `initrd --name initrd1 ${tree}/more.cpio || goto again`,
      'boot || goto failed',
      ':again',
      'imgfree',
      'inc tries',
      'iseq ${tries} 10 && goto failed ||',
      'sleep 3',
      'goto load',
      ':failed',
      'exit',
      '',
    ].join('\n'),
  );
});

test('what never loads lets a machine go on to its disk, and ends an installation', () => {
  const end = (Name: string): string | undefined =>
    plan(
      { ...bootable, Name },
      { parameters: opts, archive: opened('d/linux', 'd/initrd.gz', 'more.cpio') },
    ).files[0]?.contents?.split(':failed\n')[1];
  assert.equal(end('debian-12'), 'exit\n');
  assert.equal(end('debian-12-install'), 'poweroff || reboot\n');
});

test("the store's own default-ipxe.tmpl counts more than the built-in one", () => {
  const { files } = plan({}, { templates: new Map([['default-ipxe.tmpl', '#!mine']]) });
  assert.equal(files[0]?.contents, '#!mine');
});

test('an archive has what is booted, or it is refused', () => {
  const error = refusal('BOOTENV_NO_SOURCE', () =>
    plan(bootable, { parameters: opts, archive: opened('d/linux', 'd/initrd.gz') }),
  );
  assert.match(error.message, /d\.tar\.gz has no more\.cpio/);
});

const repository = {
  tag: 'r',
  os: ['debian-12'],
  arch: 'amd64',
  url: 'http://deb.example/debian',
  bootloc: 'http://deb.example/debian/netboot/',
  installSource: true,
  distribution: 'bookworm',
  components: ['main', 'contrib'],
};
const withRepositories = (...list: readonly object[]): Map<string, BootParameter> =>
  new Map([...opts, ...publicly({ 'package-repositories': JSON.stringify(list) })]);

test('without an archive, it boots from the installSource of its system', () => {
  const { source } = plan(bootable, { parameters: withRepositories(repository) });
  assert.deepEqual(source, { kind: 'repository', url: repository.bootloc });
  const plain = { ...repository, bootloc: '' };
  assert.deepEqual(plan(bootable, { parameters: withRepositories(plain) }).source, {
    kind: 'repository',
    url: repository.url,
  });
});

test('nothing to boot from is refused, and says what would help', () => {
  const upload = refusal('BOOTENV_NO_SOURCE', () => plan(bootable, { parameters: opts }));
  assert.match(upload.hint ?? '', /gnt-bootenv uploadiso test/);
  const parameters = withRepositories(repository);
  const allow = refusal('BOOTENV_NO_SOURCE', () =>
    plan(bootable, { parameters, isAllowed: () => false }),
  );
  assert.match(allow.message, /below no package mirror/);
  for (const other of [{ os: ['debian-11'] }, { arch: 'arm64' }, { installSource: false }])
    refusal('BOOTENV_NO_SOURCE', () =>
      plan(bootable, { parameters: withRepositories({ ...repository, ...other }) }),
    );
});

test('repositories that break their rules are refused, with the place', () => {
  for (const other of [
    { os: ['a', 'b'] },
    { arch: 'any' },
    { url: 'http://m/$basearch' },
    { x: 1 },
  ]) {
    const parameters = withRepositories({ ...repository, ...other });
    const { message } = refusal('BOOTENV_INVALID', () => plan(bootable, { parameters }));
    assert.match(message, /'package-repositories' of web1\.example\.com: 0/);
  }
  const parameters = publicly({ 'package-repositories': 'no JSON' });
  refusal('BOOTENV_INVALID', () => rendered('{{.MachineRepos}}', { parameters }));
});

test('a Path that is not the machine’s is refused', () => {
  const paths = [
    '/etc/passwd',
    '../x',
    '{{.Machine.Path}}/../x',
    '{{.Machine.Path}}',
    '{{.Machine.Path}}/',
    '{{.Machine.Path}}//x',
    '{{.Machine.Path}}/boot',
    '{{.Machine.Path}}/boot/linux',
    '{{.Machine.Path}}x/y',
    '{{.Machine.Path}}/a b',
    '{{.Machine.Path}}/a%2e',
    '{{.Machine.Path}}/a?b',
    'machines/3f0c8c6e-0000-4000-8000-000000000002/x',
    'aa:00:00:12:34:57.ipxe',
    '169.254.10.21.ipxe',
    'other',
    '{{.Machine.Path}}/{{repeat 600 "a"}}',
  ];
  for (const Path of paths) {
    const bad = { Templates: [ipxe, { Name: 'bad', Path, Contents: 'x' }] };
    const { message } = refusal('BOOTENV_INVALID', () => plan(bad));
    assert.match(message, /'bad'/, Path);
  }
});

test('a Path twice the same is refused, whatever it was written as', () => {
  const twice = {
    Templates: [
      { ...ipxe, Path: `${mac}.ipxe` },
      { ...ipxe, Name: 'again' },
    ],
  };
  const { message } = refusal('BOOTENV_INVALID', () => plan(twice));
  assert.match(message, /'ipxe' and 'again'/);
});

test('a BootEnv without an iPXE script is refused; one at the address is as good', () => {
  refusal('BOOTENV_INVALID', () => plan({ Templates: [] }));
  const { script } = plan({ Templates: [{ ...ipxe, Path: '{{.Machine.Address}}.ipxe' }] });
  assert.equal(script, `${address}.ipxe`);
});

test('what TFTP would serve is left out, and told', () => {
  const others = [
    'pxelinux.cfg/{{.Machine.HexAddress}}',
    'grub/x.cfg',
    '{{.Machine.HexAddress}}.conf',
  ];
  const Templates = others.map((Path, index) => ({ Name: `t${index}`, Path, ID: 'none.tmpl' }));
  const { files, leftOut } = plan({ Templates: [ipxe, ...Templates] });
  assert.deepEqual([files.length, leftOut.length], [1, 3]);
  assert.match(leftOut[0] ?? '', /'t0' at pxelinux\.cfg\/A9FE0A14: nothing is loaded by TFTP/);
});

test('what cannot be rendered is refused by template, line and column', () => {
  const texts: Readonly<Record<string, RegExp>> = {
    'a\n{{.Param "nosuch"}}': /template x:2:3: there is no param 'nosuch'/,
    '{{template "nosuch.tmpl" .}}': /template x:1:3: the template "nosuch.tmpl" is not defined/,
    '{{nosuch}}': /template x:1:3: there is no function 'nosuch'/,
    '{{.GenerateToken}}': /GenerateToken is refused: .* install\/events/,
    '{{.ApiURL}}': /ApiURL is refused/,
    '{{now}}': /'now' is refused/,
    '{{define "r"}}{{template "r" .}}{{end}}{{template "r" .}}': /levels/,
    '{{range until 99999}}{{range until 99999}}{{end}}{{end}}': /too many steps/,
    '{{.CallTemplate "nosuch" .}}': /"nosuch" is not defined/,
    '{{.Env.PathFor "tftp" "x"}}': /not by "tftp"/,
    '{{.Env.PathForArch "http" "x" "arm64"}}': /machines are amd64/,
    '{{.Machine.constructor}}': /there is no \.constructor/,
  };
  for (const [text, message] of Object.entries(texts)) {
    const error = refusal('BOOTENV_RENDER', () => rendered(text));
    assert.match(error.message, message);
    assert.equal(error.details['template'], 'x');
  }
  const missing = { Templates: [{ ...ipxe, ID: 'nosuch.tmpl' }] };
  assert.match(refusal('BOOTENV_RENDER', () => plan(missing)).message, /'nosuch\.tmpl'/);
});

test('a file of more than 1 MiB and files of more than 4 MiB are refused', () => {
  const mebibyte = '{{range until 1024}}{{repeat 1024 "x"}}{{end}}';
  assert.equal(Buffer.byteLength(String(rendered(mebibyte))), 1024 * 1024);
  refusal('BOOTENV_RENDER', () => rendered(`${mebibyte}x`));
  const Templates = [1, 2, 3, 4].map((each) => ({
    Name: `t${each}`,
    Path: `{{.Machine.Path}}/${each}`,
    Contents: mebibyte,
  }));
  const { message } = refusal('BOOTENV_RENDER', () => plan({ Templates: [ipxe, ...Templates] }));
  assert.match(message, /more than 4194304/);
});

test('required parameters are there, or have a default', () => {
  const needs = { RequiredParams: ['a', 'b', 'c'] };
  const parameters = publicly({ a: '1' });
  const schemas = schemasOf({ b: { Schema: { default: '' } }, c: { Schema: {} } });
  const { message } = refusal('BOOTENV_RENDER', () => plan(needs, { parameters, schemas }));
  assert.match(message, /requires the parameters c,/);
});

test('a param has the type that its schema says', () => {
  const schemas = schemasOf({
    list: { Schema: { type: 'array', default: ['a', 'b'] } },
    flag: { Schema: { type: 'boolean' } },
    number: { Schema: { type: 'integer' } },
    text: { Schema: { type: 'string' } },
    map: { Schema: { type: 'object' } },
    kind: { Schema: { type: 'string', enum: ['x', 'y'] } },
  });
  const make = (text: string, values: Readonly<Record<string, string>> = {}): unknown =>
    rendered(text, { schemas, parameters: publicly(values) });
  assert.equal(make('{{range .Param "list"}}{{.}};{{end}}'), 'a;b;');
  assert.equal(make('{{index (.Param "list") 0}}', { list: '["c"]' }), 'c');
  assert.equal(make('{{if .Param "flag"}}on{{else}}off{{end}}', { flag: 'false' }), 'off');
  assert.equal(make('{{printf "%.0f" (.Param "number")}}', { number: '7' }), '7');
  assert.equal(make('{{.Param "text"}}', { text: '7' }), '7');
  assert.equal(make('{{(.Param "map").a.b}}', { map: '{"a":{"b":"c"}}' }), 'c');
  assert.equal(make('{{.ParamExists "text"}}{{.ParamExists "list"}}'), 'falsetrue');
  assert.equal(
    make('{{.ParamAsJSON "map"}}', { map: '{"b":[1,"x"],"a":null}' }),
    '{"a":null,"b":[1,"x"]}',
  );
  assert.equal(
    make('{{.ParamAsYAML "map"}}', { map: '{"b":[1,{"c":"yes"}],"a":{}}' }),
    'a: {}\nb:\n  - 1\n  -\n    c: "yes"\n',
  );
  for (const [name, value] of Object.entries({
    list: '{}',
    flag: 'on',
    number: '1.5',
    map: '[]',
    kind: 'z',
  })) {
    const error = refusal('BOOTENV_RENDER', () => make(`{{.Param "${name}"}}`, { [name]: value }));
    assert.match(error.message, new RegExp(`'${name}' is`));
    assert.ok(!error.message.includes(value) || value.length < 3, error.message);
  }
});

test('a param that is a template is expanded, within lists as well', () => {
  const schemas = schemasOf({ list: { Schema: { type: 'array' } } });
  const parameters = publicly({
    text: 'I am {{.Machine.ShortName}}',
    list: '["{{.Machine.Arch}}"]',
  });
  const make = (text: string): unknown => rendered(text, { schemas, parameters });
  assert.equal(make('{{.ParamExpand "text"}}'), 'I am web1');
  assert.equal(make('{{.ParamExpand "list"}}'), '[amd64]');
  assert.equal(make('{{.Param "text"}}'), 'I am {{.Machine.ShortName}}');
});

test('ParamCompose joins what each layer says, the higher winning', () => {
  const schemas = schemasOf({
    m: { Schema: { type: 'object' } },
    l: { Schema: { type: 'array' } },
  });
  const [low, high] = [
    publicly({ m: '{"a":1,"b":{"x":1,"y":1}}', l: '["low"]' }),
    publicly({ m: '{"b":{"y":2}}', l: '["high"]' }),
  ];
  const parts = { schemas, parameters: high, layers: [{ values: low }, { values: high }] };
  assert.equal(rendered('{{toJson (.ParamCompose "m")}}', parts), '{"a":1,"b":{"x":1,"y":2}}');
  assert.equal(rendered('{{.ParamCompose "l"}}', parts), '[high low]');
});

test('a file tells whether a parameter in it is not public', () => {
  const parameters = new Map<string, BootParameter>([
    ['private', { visibility: 'private', value: 'p' }],
    ['secret', { visibility: 'secret', value: new Secret('s') }],
    ...publicly({ public: 'x', secure: 'y' }),
  ]);
  const schemas = schemasOf({ secure: { Secure: true } });
  const isBearing = (name: string): unknown =>
    plan(withText(`{{.Param "${name}"}}`), { parameters, schemas }).files[1]?.isSecretBearing;
  assert.deepEqual(['public', 'private', 'secret', 'secure'].map(isBearing), [
    false,
    true,
    true,
    true,
  ]);
  assert.equal(rendered('{{.Param "secret"}}', { parameters }), 's');
});

const lost = new Map<string, BootParameter>([
  ['s1', { visibility: 'secret', value: null }],
  ['s2', { visibility: 'secret', value: null }],
]);

test('a file that needs a lost secret has its names, and no contents; others have theirs', () => {
  const { files } = plan(withText('{{.Param "s1"}}{{upper (.Param "s2")}}{{.Param "s1"}}'), {
    parameters: lost,
  });
  assert.deepEqual(
    files.map(({ contents, lostSecrets }) => [contents === null, lostSecrets]),
    [
      [false, []],
      [true, ['s1', 's2']],
    ],
  );
});

test('a file with a secret has a digest of the rest of it, whether the secret is known or not', () => {
  const text = '{{.Param "color"}} {{.Param "s1" | upper}} {{range .Param "list"}}{{.}}{{end}}';
  const schemas = schemasOf({ list: { Schema: { type: 'array' } } });
  const basisOf = (color: string, s1: string | null, template = text): unknown => {
    const secret = (value: string | null): BootParameter => ({
      visibility: 'secret',
      value: value === null ? null : new Secret(value),
    });
    const list = secret(s1 === null ? null : '["a"]');
    const parameters = new Map([...publicly({ color }), ['s1', secret(s1)], ['list', list]]);
    return plan(withText(template), { parameters, schemas }).files[1]?.basis;
  };
  assert.match(String(basisOf('blue', 'x')), /^[0-9a-f]{64}$/);
  assert.equal(basisOf('blue', 'x'), basisOf('blue', null));
  assert.equal(basisOf('blue', 'x'), basisOf('blue', 'another'));
  assert.notEqual(basisOf('blue', 'x'), basisOf('red', null));
  assert.equal(basisOf('blue', 'x', '{{.Param "color"}}'), null);
  // Only the secret lets it be rendered.
  const picky = '{{if ne (.Param "s1") "x"}}{{fail "no"}}{{end}}';
  assert.equal(basisOf('blue', 'x', picky), basisOf('blue', null, picky));
});

test('a public value that only the secret leads to is in the digest, too', () => {
  const schemas = schemasOf({
    list: { Schema: { type: 'array' } },
    map: { Schema: { type: 'object' } },
  });
  const values = { s: 'x', t: '{{.Param "pub"}}', list: '["a"]', map: '{"user":"u"}' };
  const basisOf = (template: string, pub: string, isKnown: boolean): unknown => {
    const secrets = Object.entries(values).map(([name, value]): [string, BootParameter] => [
      name,
      { visibility: 'secret', value: isKnown ? new Secret(value) : null },
    ]);
    const parameters = new Map([...publicly({ pub }), ...secrets]);
    return plan(withText(template), { parameters, schemas }).files[1]?.basis;
  };
  for (const template of [
    '{{.Param "pub"}} {{index (.Param "list") 0}}',
    '{{.Param "pub"}} {{(.Param "map").user}}',
    '{{range .Param "list"}}{{$.Param "pub"}}{{end}}',
    '{{if eq (.Param "s") "x"}}{{.Param "pub"}}{{end}}',
    '{{.ParamExpand "t"}}',
  ]) {
    const before = basisOf(template, 'old', true);
    assert.equal(basisOf(template, 'old', false), before, template);
    assert.notEqual(basisOf(template, 'new', false), before, template);
  }
});

test('no secret gets into an error', () => {
  const parameters = new Map<string, BootParameter>([
    ['s', { visibility: 'secret', value: new Secret('hunter2') }],
    ['call', { visibility: 'secret', value: new Secret('a{{hunter2}}') }],
    ['field', { visibility: 'private', value: 'a{{.hunter2}}' }],
    [
      'define',
      {
        visibility: 'private',
        value: '{{define "hunter2"}}{{fail "x"}}{{end}}{{template "hunter2"}}',
      },
    ],
    ['quote', { visibility: 'private', value: 'a"hunter2' }],
  ]);
  for (const text of [
    '{{fail (.Param "s")}}',
    '{{.CallTemplate (.Param "s") .}}',
    '{{regexMatch (print (.Param "s") "(") "x"}}',
    '{{.ParseURL "host" (.Param "s")}}',
    '{{.Env.PathFor (.Param "s") "x"}}',
    '{{b64dec (.Param "s")}}',
    '{{fail (print "\\"" (.Param "s") "\\"")}}',
    '{{.ParamExpand "call"}}',
    '{{.ParamExpand "field"}}',
    '{{.ParamExpand "define"}}',
    '{{.CallTemplate (.Param "quote") .}}',
  ]) {
    const error = refusal('BOOTENV_RENDER', () => rendered(text, { parameters }));
    const told = JSON.stringify([error.message, error.hint, error.details, String(error.cause)]);
    assert.ok(!told.includes('hunter2'), told);
  }
  const path = {
    Templates: [ipxe, { Name: 'p', Path: '{{.Machine.Path}}/{{.Param "s"}}', Contents: 'x' }],
  };
  const error = refusal('BOOTENV_RENDER', () => plan(path, { parameters }));
  assert.ok(!error.message.includes('hunter2'));
});

test('bootenv-customize replaces what it says, templates by their Name', () => {
  const custom = {
    test: {
      OS: {
        Name: 'mine',
        SupportedArchitectures: { x86_64: { Kernel: 'other', Initrds: ['i'], BootParams: 'p' } },
      },
      Templates: [
        { Name: 'x', Path: '{{.Machine.Path}}/x', Contents: 'customized {{.Env.OS.Name}}' },
      ],
      Loaders: { 'amd64-uefi': 'efi/boot.efi' },
    },
    another: { OS: { Name: 'no' } },
  };
  const parameters = new Map([
    ...opts,
    ...publicly({ 'bootenv-customize': JSON.stringify(custom) }),
  ]);
  const made = plan(
    { ...bootable, ...withText('original') },
    { parameters, archive: opened('other', 'i', 'efi/boot.efi') },
  );
  assert.deepEqual([made.osName, made.kernel, made.initrds], ['mine', 'other', ['i']]);
  assert.equal(made.httpLoader, 'efi/boot.efi');
  assert.equal(made.files[1]?.contents, 'customized mine');
  for (const text of ['{"test":{"Kernel":"x"}}', '[]', 'x'])
    refusal('BOOTENV_INVALID', () =>
      plan({}, { parameters: publicly({ 'bootenv-customize': text }) }),
    );
});

test('what decides which files there are is public', () => {
  for (const name of ['bootenv-customize', 'package-repositories'])
    for (const [visibility, value] of [
      ['private', '{"test":{"hunter2":1}}'],
      ['secret', new Secret('hunter2')],
      ['secret', null],
    ] as const) {
      const error = refusal('BOOTENV_INVALID', () =>
        plan(bootable, { parameters: new Map([...opts, [name, { visibility, value }]]) }),
      );
      assert.match(error.message, new RegExp(`'${name}'.*has to be public`));
      assert.ok(!`${error.message}${error.hint}`.includes('hunter2'));
    }
});

test('no Path makes a file of another one its folder', () => {
  for (const order of [
    ['seed', 'seed/x'],
    ['seed/x', 'seed'],
  ]) {
    const files = order.map((path) => ({
      ...{ Name: path, Path: `{{.Machine.Path}}/${path}`, Contents: path },
    }));
    const error = refusal('BOOTENV_INVALID', () => plan({ Templates: [ipxe, ...files] }));
    assert.match(error.message, /seed.*a file and a folder/);
  }
});

test('a Link is the same as another file, and leads nowhere else', () => {
  const link = (Link: string): object => ({
    Templates: [ipxe, { Name: 'l', Path: '{{.Machine.Path}}/l', Link }],
  });
  const { files } = plan(link('{{.Machine.MacAddr}}.ipxe'));
  assert.equal(files[1]?.contents, files[0]?.contents);
  for (const bad of ['/etc/shadow', '../x', 'machines/x/y'])
    refusal('BOOTENV_INVALID', () => plan(link(bad)));
});

test('machines, systems and repositories have the names that dr-provision gives them', () => {
  const updates = { ...repository, tag: 'u', installSource: false, arch: 'any' };
  const security = {
    ...updates,
    tag: 's',
    url: 'http://sec.example/debian-security/',
    securitySource: true,
    distribution: 'bookworm-security',
  };
  const yum = {
    tag: 'c',
    os: ['centos-8'],
    arch: 'x86_64',
    url: 'http://c.example/centos',
    distribution: '8',
    components: ['AppStream'],
  };
  const parameters = withRepositories(repository, updates, security, yum);
  const bootEnv = { OS: { ...bootable.OS, Family: 'debian', Version: '12.5' } };
  const make = (text: string): unknown =>
    rendered(text, { parameters, archive: opened('d/linux', 'd/initrd.gz', 'more.cpio') }, bootEnv);
  const texts: Readonly<Record<string, string>> = {
    '{{.Machine.ShortName}} {{.Machine.HexAddress}} {{.Machine.UUID}}': `web1 A9FE0A14 ${uuid}`,
    '{{.Machine.MacAddr "pxelinux"}}': '01-aa-00-00-12-34-56',
    '{{.Env.OS.FamilyName}} {{.Env.OS.FamilyType}} {{.Env.OS.FamilyVersion}}': 'debian debian 12.5',
    '{{.Env.OS.VersionEq "12"}}{{.Env.OS.VersionEq "12.5"}}{{.Env.OS.VersionEq "12.5.1"}}{{.Env.OS.VersionEq "1"}}':
      'truetruefalsefalse',
    '{{.Env.JoinInitrds "http"}}': `${baseUrl}/machines/${uuid}/boot/d/initrd.gz,${baseUrl}/machines/${uuid}/boot/more.cpio`,
    '{{.Env.InstallUrl}}': `${baseUrl}/machines/${uuid}/boot`,
    '{{.ParseURL "host" .ProvisionerURL}} {{.ProvisionerAddress}}':
      '169.254.169.254 169.254.169.254',
    '{{(index .Env.OS.SupportedArchitectures "amd64").Kernel}}': 'd/linux',
    '{{range .MachineRepos}}{{.Tag}} {{.Lines}}{{end}}':
      'r deb http://deb.example/debian bookworm main contrib\nu deb http://deb.example/debian bookworm main contrib\ns deb http://sec.example/debian-security/ bookworm-security main contrib\n',
    '{{range .InstallRepos}}{{.Install}}\n{{end}}':
      'd-i mirror/protocol string http\nd-i mirror/http/hostname string deb.example\nd-i mirror/http/directory string /debian\nd-i apt-setup/security_host string sec.example\nd-i apt-setup/security_path string /debian-security\n',
    '{{range .Repos "c"}}{{.RepoType}} {{.UrlFor "AppStream"}} {{.JoinedComponents}} {{.R.Machine.Name}}{{end}}':
      'yum http://c.example/centos/8/AppStream/$basearch/os AppStream web1.example.com',
  };
  for (const [text, want] of Object.entries(texts)) assert.equal(make(text), want);
});

function loadExample(): { readonly bootEnv: BootEnv } & Pick<
  BootPlanInput,
  'templates' | 'schemas'
> {
  const folder = new URL('../../../fixtures/bootenvs/debian-12/', import.meta.url);
  const read = (path: string): string => readFileSync(new URL(path, folder), 'utf8');
  const list = (kind: string): readonly string[] => readdirSync(new URL(kind, folder));
  const params = list('params/').map((name) => bootParam.parse(parse(read(`params/${name}`))));
  return {
    bootEnv: foldBootEnv(bootEnvDocument.parse(parse(read('bootenvs/debian-12-install.yaml'))))
      .bootEnv,
    templates: new Map(
      list('templates/').map((name) => [basename(name), read(`templates/${name}`)]),
    ),
    schemas: new Map(params.map((param) => [param.Name, param])),
  };
}

test('the example for Debian has what its installer needs on a network without a router', () => {
  const archive = (): { has: () => boolean } => ({ has: () => true });
  const { files } = plan({}, { ...loadExample(), archive });
  assert.deepEqual(
    files.map(({ path }) => path),
    [`${address}.ipxe`, `${mac}.ipxe`, `machines/${uuid}/preseed.cfg`],
  );
  const [, script, preseed] = files.map(({ contents }) => contents ?? '');
  assert.match(
    script ?? '',
    /netcfg\/no_default_route=true netcfg\/get_nameservers=169\.254\.169\.254/,
  );
  assert.match(script ?? '', new RegExp(`preseed/url=${baseUrl}/machines/${uuid}/preseed.cfg`));
  assert.match(preseed ?? '', /d-i partman-auto\/disk string \/dev\/vda\n/);
  assert.match(preseed ?? '', /late_command string wget .*"status":"success"/);
  const parameters = publicly({ 'debian-preseed': 'debian-12-rehearsal.tmpl' });
  const rehearsal = plan({}, { ...loadExample(), archive, parameters }).files[2]?.contents ?? '';
  assert.match(rehearsal, /"line":"rehearsal of web1\.example\.com"/);
  assert.ok(!rehearsal.includes('partman'), rehearsal);
});

test('what a machine is installed from is reached by its channel, where there is a way', () => {
  const security = { ...repository, tag: 's', url: 'http://sec.example/debian-security' };
  const updates = { ...security, installSource: false, securitySource: true };
  const parameters = withRepositories(repository, updates);
  const text =
    '{{range .InstallRepos}}{{.Tag}} {{.URL}}|{{end}}{{range .MachineRepos}}{{.URL}} {{end}}';
  const mirrorUrl = (url: string): string | null =>
    url.startsWith('http://deb.example/') ? 'http://169.254.169.254/m/debian' : null;
  const make = (Name: string, parts: Partial<BootPlanInput> = {}): unknown =>
    rendered(text, { parameters, mirrorUrl, ...parts }, { ...bootable, Name });
  const own = 'http://deb.example/debian http://sec.example/debian-security ';
  assert.equal(
    make('x-install'),
    `r http://169.254.169.254/m/debian|s http://sec.example/debian-security|${own}`,
  );
  // Mirrors are closed in normal runs.
  assert.match(String(make('live')), /^r http:\/\/deb\.example\/debian\|/);
  const local = `${baseUrl}/machines/${uuid}/boot`;
  const loaded = ['d/linux', 'd/initrd.gz', 'more.cpio'];
  const whole = opened(...loaded, 'dists/stable/Release');
  assert.equal(
    make('x-install', { archive: whole }),
    `x-install ${local}|s http://sec.example/debian-security|${own}`,
  );
  // An installer alone, which needs a mirror.
  assert.match(String(make('x-install', { archive: opened(...loaded) })), /^r http:\/\/169/);
});
