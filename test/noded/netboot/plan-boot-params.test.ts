import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bootParam, type BootParam } from '#shared/contract/boot-env.ts';
import { Secret } from '#shared/secret/secret.ts';
import type { BootParameter, BootPlanInput } from '../../../noded/netboot/boot-plan.ts';
import {
  bootable,
  ipxe,
  opened,
  opts,
  plan,
  publicly,
  refusal,
  rendered,
  withText,
} from './plan-fixture.ts';

const schemasOf = (schemas: Readonly<Record<string, object>>): Map<string, BootParam> =>
  new Map(
    Object.entries(schemas).map(([Name, parts]) => [Name, bootParam.parse({ Name, ...parts })]),
  );

const lost = new Map<string, BootParameter>([
  ['s1', { visibility: 'secret', value: null }],
  ['s2', { visibility: 'secret', value: null }],
]);

test('a missing required parameter without a default is refused', () => {
  const needs = { RequiredParams: ['a', 'b', 'c'] };
  const parameters = publicly({ a: '1' });
  const schemas = schemasOf({ b: { Schema: { default: '' } }, c: { Schema: {} } });
  const { message } = refusal('BOOTENV_RENDER', () => plan(needs, { parameters, schemas }));
  assert.match(message, /requires the parameters c,/);
});

test('a param has the type of its schema', () => {
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
    assert.match(error.message, new RegExp(`'${name}' must be`));
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

test('ParamCompose merges the values of all layers, and higher layers win', () => {
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

test('a file with a parameter that is not public is marked as secret-bearing', () => {
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

test('a file that needs lost secrets has their names and no contents, and other files have contents', () => {
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

test('a file with a secret has a digest of its public values, known secret or not', () => {
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
  // It renders only with the secret.
  const picky = '{{if ne (.Param "s1") "x"}}{{fail "no"}}{{end}}';
  assert.equal(basisOf('blue', 'x', picky), basisOf('blue', null, picky));
});

test("the digest covers a public value that a secret's template refers to", () => {
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

test('the digest covers the archive and the package mirrors', () => {
  const basisOf = (parts: Partial<BootPlanInput>): unknown => {
    const s: BootParameter = { visibility: 'secret', value: new Secret('x') };
    const parameters = new Map([...opts, ['s', s] as const]);
    const { files } = plan(
      { ...bootable, ...withText('{{.Param "s"}}') },
      { parameters, ...parts },
    );
    return files.find(({ path }) => path.endsWith('/x'))?.basis;
  };
  const archive = opened('d/linux', 'd/initrd.gz', 'more.cpio');
  const packageMirrors = { debian: 'http://deb.example/debian' };
  const before = basisOf({ archive, packageMirrors });
  assert.equal(basisOf({ archive, packageMirrors: { ...packageMirrors } }), before);
  assert.notEqual(basisOf({ archive }), before, 'the mirror is not allowed any more');
  const another: BootPlanInput['archive'] = () => ({ sha256: 'b'.repeat(64), has: () => true });
  assert.notEqual(basisOf({ archive: another, packageMirrors }), before, 'the name has new bytes');
});

test('errors do not show secret values', () => {
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

test('bootenv-customize replaces its fields, and templates by their Name', () => {
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
