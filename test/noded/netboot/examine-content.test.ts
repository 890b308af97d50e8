import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { BootEnv, BootTemplate } from '#shared/contract/boot-env.ts';
import { bootParam, bootTemplate } from '#shared/contract/boot-env.ts';
import { AppError } from '#shared/errors/app-error.ts';
import {
  examineContent,
  listMissingTemplates,
  scopeBuiltIn,
} from '../../../noded/netboot/examine-content.ts';
import { envOf, ipxe } from './plan-fixture.ts';

const templateOf = (ID: string, Contents: string): BootTemplate =>
  bootTemplate.parse({ ID, Contents });

async function refusalOf(bootEnvs: readonly BootEnv[], templates: readonly BootTemplate[] = []) {
  try {
    await examineContent({ bootEnvs, templates, params: [] });
  } catch (error) {
    assert.ok(error instanceof AppError, String(error));
    assert.equal(error.code, 'BOOTENV_INVALID');
    return error;
  }
  return assert.fail('it was accepted');
}

test('a template that does not parse is refused with its line and column', async () => {
  const broken: Readonly<Record<string, string>> = {
    'a\n{{if .x}}': 'template seed.tmpl:2:',
    '{{end}}': 'template seed.tmpl:1:',
    'a\nb {{.Param "x}}': 'template seed.tmpl:2:',
    '{{nosuchfunction 1}}': "template seed.tmpl:1:3: function 'nosuchfunction' does not exist",
    '{{define "a"}}x{{end}}{{define "a"}}y{{end}}': 'template seed.tmpl:1:',
  };
  for (const [text, start] of Object.entries(broken)) {
    const { message, details } = await refusalOf([], [templateOf('seed.tmpl', text)]);
    assert.ok(message.startsWith(start), message);
    assert.equal(details['template'], 'seed.tmpl');
    assert.equal(typeof details['line'], 'number');
  }
});

test('each text of a BootEnv is parsed: Contents, Path, Link and BootParams', async () => {
  const withTemplate = (parts: object): BootEnv =>
    envOf({ Templates: [ipxe, { Name: 'x', Path: '{{.Machine.Path}}/x', ...parts }] });
  const cases: readonly (readonly [BootEnv, RegExp, unknown])[] = [
    [withTemplate({ Contents: 'a\n{{if}}' }), /^BootEnv test: Contents of 'x':2:/, 'Contents'],
    [withTemplate({ Contents: 'a', Path: '{{x' }), /^BootEnv test: Path of 'x':1:/, 'Path'],
    [withTemplate({ Link: '{{end}}' }), /^BootEnv test: Link of 'x':1:/, 'Link'],
    [envOf({ BootParams: 'auto {{.Param' }), /^BootEnv test: BootParams:1:/, 'BootParams'],
  ];
  for (const [bootEnv, message, field] of cases) {
    const error = await refusalOf([bootEnv]);
    assert.match(error.message, message);
    assert.equal((error.details['field'] as readonly unknown[]).at(-1), field);
  }
});

test('a template that calls unknown templates or refused functions is accepted', async () => {
  await examineContent({
    bootEnvs: [envOf({ Templates: [{ ...ipxe, ID: 'later.tmpl' }] })],
    templates: [templateOf('a.tmpl', '{{template "none.tmpl" .}}'), templateOf('b', '{{now}}')],
    params: [],
  });
});

test('an installing BootEnv without a kernel for amd64 is refused', async () => {
  const arm64 = { arm64: { Kernel: 'linux', Initrds: ['initrd.gz'] } };
  const parts = { Name: 'x-install', OS: { Name: 'x', SupportedArchitectures: arm64 } };
  const { message } = await refusalOf([envOf(parts)]);
  assert.match(message, /x-install has no Kernel for amd64/);
  const own = { ...ipxe, ID: '', Contents: '#!ipxe\nkernel {{.Env.PathFor "http" .Env.Kernel}}' };
  await refusalOf([envOf({ ...parts, Templates: [own] })]);
  const chain = { ...own, Contents: '#!ipxe\nchain http://boot.example/' };
  for (const other of [
    { ...parts, Name: 'live' },
    { ...parts, Templates: [chain] },
    { ...parts, Templates: [] },
    { ...parts, OS: { Name: 'x', SupportedArchitectures: { x86_64: { Kernel: 'linux' } } } },
  ])
    await examineContent({ bootEnvs: [envOf(other)], templates: [], params: [] });
});

test('a default-ipxe.tmpl in an upload applies to the BootEnvs of that upload', () => {
  const own = templateOf('default-ipxe.tmpl', '#!ipxe\nboot\n');
  const other = templateOf('seed.tmpl', 'x');
  const scoped = scopeBuiltIn({ bootEnvs: [envOf({})], templates: [own, other] });
  assert.deepEqual(scoped.templates, [other]);
  const [script] = scoped.bootEnvs[0]?.Templates ?? [];
  assert.deepEqual([script?.ID, script?.Contents, script?.Path], ['', own.Contents, ipxe.Path]);
  const plain = { bootEnvs: [envOf({})], templates: [other] };
  assert.equal(scopeBuiltIn(plain), plain);
});

test('a default that its schema does not accept is refused', async () => {
  const examine = (Schema: object): Promise<void> =>
    examineContent({
      ...{ bootEnvs: [], templates: [] },
      params: [bootParam.parse({ Name: 'p', Schema })],
    });
  for (const Schema of [
    { type: 'integer', default: '7' },
    { type: ['array', 'object'], default: 'x' },
    { type: 'string', enum: ['a', 'b'], default: 'c' },
  ])
    await assert.rejects(examine(Schema), /param p: its default is not/);
  for (const Schema of [
    { type: 'integer', default: 7 },
    { type: 'object' },
    { default: 1 },
    { enum: [{ a: 1 }], default: { a: 1 } },
    { type: 'unknown', default: 'x' },
  ])
    await examine(Schema);
});

test('undefined templates are listed by BootEnv, and the built-in template is not', () => {
  const seed = { Name: 's', Path: '{{.Machine.Path}}/s', ID: 'seed.tmpl' };
  const bootEnv = envOf({ Templates: [ipxe, seed, { ...seed, Name: 't', ID: 'known.tmpl' }] });
  assert.deepEqual(listMissingTemplates([bootEnv], [templateOf('known.tmpl', 'x')]), [
    'BootEnv test: seed.tmpl',
  ]);
});
