import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { isAppError } from '#shared/errors/app-error.ts';
import { parseHookDocument } from '../../../../appliance/agent/hooks/document.ts';
import { compileGoRegex } from '../../../../appliance/agent/hooks/go-regex.ts';
import { hookDocument } from './support/temp-root.ts';
import { threadMs } from '../../../lab/thread-time.ts';

const parse = (text: string) => parseHookDocument(hookDocument(text));
const stepsOf = (text: string, stage = 'after-install-chroot') =>
  parse(`stages:\n  ${stage}:\n${text.replace(/^/gm, '    ')}`).stages.get(
    stage as 'after-install-chroot',
  );

/** Expects a refusal with this text and without SECRET. */
function refused(text: string, message: RegExp): void {
  assert.throws(
    () => parse(text),
    (error: Error & { code?: string; hint?: string }) => {
      assert.equal(error.code, 'HOOK_FAILED');
      assert.match(error.message, message);
      assert.doesNotMatch(`${error.message} ${error.hint}`, /SECRET/);
      return true;
    },
  );
}

test('scalars keep their text: modes are octal, and 1.10 and yes are strings', () => {
  const [step] =
    stepsOf(`- files: [{path: /a, permissions: 0750}, {path: /b, permissions: 0o640}, {path: /c, permissions: 420},
           {path: /d, permissions: 0x1a4}]
  environment: {VERSION: 1.10, ANSWER: yes, NOTHING: }
  optional: yes`) ?? [];
  assert.deepEqual(
    step?.files.map(({ permissions }) => permissions),
    [0o750, 0o640, 420, 420],
  );
  assert.deepEqual(step?.environment, { VERSION: '1.10', ANSWER: 'yes', NOTHING: '' });
  assert.equal(step?.optional, true);
});

test('keys without a value and stages without steps are empty', () => {
  const [step] = stepsOf('- files:\n  commands: ~\n  dns: {nameservers: }\n  users: {web: }') ?? [];
  assert.deepEqual(step?.files, []);
  assert.deepEqual(step?.commands, []);
  assert.deepEqual(step?.dns?.nameservers, []);
  assert.deepEqual(step?.users['web']?.groups, []);
  assert.deepEqual(parse('').stages.size, 0);
  assert.deepEqual(parse('stages:').stages.size, 0);
  assert.deepEqual(parse('stages:\n  after-install:').stages.get('after-install'), []);
});

test('every spelling of null is empty, and a quoted null is text', () => {
  const [step, none] =
    stepsOf(`- files: null
  dns: Null
  environment: {A: ~, B: null, C: 'null', D: "~", E: !!str NULL, null: x}
- `) ?? [];
  assert.deepEqual([step?.files, step?.dns, none?.commands], [[], undefined, []]);
  assert.deepEqual(step?.environment, {
    ...{ A: '', B: '', C: 'null', D: '~', E: 'NULL' },
    null: 'x',
  });
  assert.deepEqual(parse('stages: null').stages.size, 0);
});

test('anchors and merges are resolved', () => {
  const [step] =
    stepsOf(`- files:
    - &base {path: /a, permissions: 0600}
    - {<<: *base, path: /b}`) ?? [];
  assert.deepEqual(
    step?.files.map(({ path, permissions }) => [path, permissions]),
    [
      ['/a', 0o600],
      ['/b', 0o600],
    ],
  );
});

test('stages outside of installations and keys for the guest are ignored and listed', () => {
  const document = parse('#cloud-config\nruncmd: [x]\nstages:\n  boot:\n  - packages: {}\n');
  assert.deepEqual(document.ignored, ['runcmd', 'stage boot']);
  assert.equal(document.stages.size, 0);
});

test('an error names its place and shows no value of the document', () => {
  refused('- SECRET', /^hooks instance\/test\.yaml: not a map with "stages"$/);
  refused('SECRET: [', /line 1: not valid YAML \(\w+\)$/);
  refused('a: 1\nb: *SECRET', /line 2: an alias without an anchor/);
  refused('stages: SECRET', /"stages" is not a map/);
  refused('stages: {after-install: SECRET}', /stage after-install is not a list of steps/);
  refused('stages: {after-install: [SECRET]}', /stage after-install, step 1: not a map/);
  const step = (text: string): string => `stages: {after-install-chroot: [{}, {${text}}]}`;
  refused(step('git: {url: SECRET}'), /step 2: "git" is not possible in an installation: /);
  refused(step('gti: {url: SECRET}'), /step 2: unknown field "gti"/);
  refused(step('"SECRET with words": x'), /step 2: unknown field/);
  refused(step('files: [{path: SECRET}]'), /step 2: files 1 path: not an absolute path/);
  refused(step('files: [{path: /a}, {path: /b, permissions: SECRET}]'), /files 2 permissions/);
  refused(step('commands: [{SECRET: x}]'), /commands 1/);
  refused(step('users: {web: {passwd: "SECRET:0:"}}'), /users web passwd: contains a colon/);
  refused(step('authorized_keys: {web: ["github:SECRET"]}'), /cannot fetch keys/);
  refused(step('systemctl: {strat: [SECRET]}'), /systemctl: unknown field "strat"/);
  refused(step('only_os: "SECRET("'), /only_os: not a regular expression/);
});

test('a step that changes the instance is refused where it would change the appliance', () => {
  for (const field of ['hostname: a', 'users: {a: }', 'sysctl: {a: 1}', 'authorized_keys: {a: []}'])
    refused(`stages: {after-install: [{${field}}]}`, /changes the instance, but this stage/);
});

test('a layout needs a stage without mounts, and a device with either a path or a label', () => {
  const layout = (text: string): string => `stages: {before-install: [{layout: {${text}}}]}`;
  const [step] =
    parse(layout('device: {label: A}, add_partitions: [{pLabel: b, size: 10}]')).stages.get(
      'before-install',
    ) ?? [];
  assert.deepEqual(step?.layout?.add_partitions[0], {
    pLabel: 'b',
    size: 10,
    filesystem: 'ext2',
    bootable: false,
  });
  refused(layout('device: {}'), /layout device: path or label is required/);
  refused(
    layout('device: {path: /dev/vda, label: SECRET}'),
    /layout device: path or label is required/,
  );
  refused(layout('device: {path: /a}, add_partitions: [{fsLabel: "SECRET\\n"}]'), /not a label/);
  refused(
    layout('device: {path: /dev/vda}').replace('before-install', 'after-reset-chroot.after'),
    /"layout" changes disks, but they are mounted in this stage/,
  );
});

test('stage names of Kairos are translated, other stages are ignored, and two names of a stage add up', () => {
  const document = parse(`stages:
  kairos-install.pre.before: [{name: a}]
  kairos-install.pre: [{name: b}]
  install.pre: [{name: c}]
  kairos-install.after: [{name: d}]
  kairos-install.after.after: [{name: e}]
  boot.after: [{nonsense: 1}]
  provider-kairos.bootstrap.before: [{}]
  kairos-uki-install.pre: [{}]
  after-upgrade-chroot: [{}]
`);
  const names = [...document.stages].map(([stage, steps]) => [
    stage,
    steps.map(({ name }) => name),
  ]);
  assert.deepEqual(names, [
    ['install.pre.before', ['a']],
    ['install.pre', ['b', 'c']],
    ['install.post', ['d']],
    ['install.post.after', ['e']],
  ]);
  assert.deepEqual(document.ignored, [
    'stage boot.after',
    'stage provider-kairos.bootstrap.before',
    'stage kairos-uki-install.pre',
    'stage after-upgrade-chroot',
  ]);
});

test('a mistyped stage is an error with the intended name', () => {
  const hintOf = (text: string): string | undefined => {
    try {
      parse(text);
      return undefined;
    } catch (error) {
      assert.ok(isAppError(error, 'HOOK_FAILED'));
      return error.hint;
    }
  };
  assert.equal(hintOf('stages: {after-instal-chroot: []}'), 'Did you mean after-install-chroot?');
  assert.equal(hintOf('stages: {kairos-instal.pre: []}'), 'Did you mean kairos-install.pre?');
  assert.equal(hintOf('stages: {nework: []}'), 'Did you mean network?');
  assert.equal(hintOf('stage: {boot: []}'), 'Did you mean stages?');
  refused('stages: {boot: [], SECRET-of-someone: []}', /unknown stage: number 2 of "stages"$/);
  refused('stages: {boot: [], provision: []}', /unknown stage provision$/);
  refused('stages: {correct-horse-battery-4: []}', /unknown stage: number 1 of "stages"$/);
});

test("expressions have Go's flags, groups and classes, and other syntax is refused", () => {
  const [step] = stepsOf("- {only_os: '(?i)DEBIAN', only_arch: '^(?P<a>[[:alpha:]]+)64\\z'}") ?? [];
  assert.equal(step?.only_os, '(?i)DEBIAN');
  for (const source of ['a(?=b)', '(?!x).*', '(a)\\1', '(?<=a)b', 'a(?i)b', '[[:^alpha:]]'])
    refused(`stages: {install.pre: [{only_os: '${source}'}]}`, /only_os: not a regular expression/);
  const matching = compileGoRegex('^(?P<a>[[:alpha:]]+)64$').exec('amd64');
  assert.equal(matching?.groups?.['a'], 'amd');
});

test('a document of multiplying aliases is refused', () => {
  const lines = ['a0: &a0 [x,x,x,x,x,x,x,x,x,x]'];
  for (let n = 1; n < 9; n += 1)
    lines.push(
      `a${n}: &a${n} [${Array(10)
        .fill(`*a${n - 1}`)
        .join(',')}]`,
    );
  refused(lines.join('\n'), /cannot resolve its aliases/);
});

test('the example of the how-to guide is a valid document', () => {
  const guide = readFileSync(new URL('../../../../docs/howto/hooks.md', import.meta.url), 'utf8');
  const [, example = ''] = /```yaml\n([\s\S]*?)```/.exec(guide) ?? [];
  const { stages } = parse(example);
  assert.deepEqual([...stages.keys()], ['before-install', 'after-install-chroot']);
  assert.equal(stages.get('after-install-chroot')?.[0]?.files[0]?.content, 'hello\n');
});

test('a document of too many lines or steps is refused within a second', () => {
  const tookMs = threadMs(() => {
    refused(`stages:\n  install.pre: [${'{},'.repeat(200_000)}]\n`, /more than 20000 lines/);
    refused(`stages:\n  install.pre:\n${'  - {}\n'.repeat(200_000)}`, /more than 20000 lines/);
  });
  assert.ok(tookMs < 1000, `${tookMs} ms`);
  refused(`stages:\n  install.pre:\n${'  - {}\n'.repeat(1001)}`, /more than 1000 steps/);
});

test('a __proto__ key and an alias to itself are refused', () => {
  refused('stages:\n  install.pre:\n    - __proto__: {commands: [SECRET]}\n', /__proto__/);
  refused('stages: &all\n  install.pre:\n    - files: *all\n', /an alias refers to itself/);
});

test('a document that is nested too deep or has maps as keys is refused', () => {
  refused(
    `stages:\n  after-install:\n    ${'- '.repeat(40_000)}SECRET`,
    /nested more than \d+ deep/,
  );
  // The library takes a minute for this.
  refused(`stages:\n${'? '.repeat(40)}SECRET`, /line 2: a key is not a scalar/);
});

test('unsupported fields are refused by name and reason, in stages of an installation only', () => {
  for (const field of ['git', 'unpack_images', 'datasource', 'package_pins'])
    refused(
      `stages: {after-install-chroot: [{${field}: {url: SECRET}}]}`,
      new RegExp(`step 1: "${field}" is not possible in an installation: `),
    );
  assert.deepEqual(parse('stages: {boot: [{git: {url: x}}], after-install: [{git: }]}').ignored, [
    'stage boot',
  ]);
});

test('entities are read with the document: their kind, their numbers, and no colon or line end within a field', () => {
  const entity = (text: string): string =>
    `stages: {after-install-chroot: [{ensure_entities: [{entity: '${text}'}]}]}`;
  refused(entity('kind: SECRET'), /ensure_entities 1 entity: invalid entity: kind/);
  refused(entity('{kind: [SECRET'), /not valid YAML/);
  refused(entity('{kind: user, username: a, uid: -1, gid: 1}'), /invalid entity: uid/);
  refused(entity('{kind: user, username: "a:0", uid: 1, gid: 1}'), /invalid entity: username/);
  refused(entity('{kind: group, group_name: a, gid: 1, SECRET: 1}'), /invalid entity/);
});

test('templates with functions, conditions or unknown values are refused', () => {
  const step = (text: string): string =>
    `stages: {after-install-chroot: [{commands: ['${text}']}]}`;
  refused(step('echo {{ .Values.cpu.model }}'), /commands 1: .* no value \.Values\.cpu\.model/);
  refused(
    step('{{ if .Values.os.name }}SECRET{{ end }}'),
    /commands 1: .* only use values by name/,
  );
  refused(step('{{ .Values.os.name | upper }}'), /only use values by name/);
  refused(step('{{ .Values.os.name }} {{'), /is not closed/);
  refused(
    'stages: {after-install-chroot: [{hostname: "a-{{ .MachineID }}"}]}',
    /no value \.MachineID/,
  );
  // Braces for another template engine.
  parse(step('docker ps --format {{.Names}}'));
});
