import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { z } from 'zod';
import {
  createTemplateSet,
  listFunctionNames,
  type TemplateLimits,
} from '../../../../noded/netboot/template/render-templates.ts';
import { TemplateError } from '../../../../noded/netboot/template/template-error.ts';
import { fromJson, type Value } from '../../../../noded/netboot/template/values.ts';

const fixture = (name: string): unknown =>
  JSON.parse(
    readFileSync(new URL(`../../../../fixtures/templates/${name}`, import.meta.url), 'utf8'),
  );
const recordedCases = z.strictObject({
  data: z.unknown(),
  cases: z.array(
    z.strictObject({ template: z.string(), others: z.record(z.string(), z.string()).optional() }),
  ),
});
const recordedResults = z.array(
  z.union([z.strictObject({ text: z.string() }), z.strictObject({ error: z.string() })]),
);
const LIMITS: TemplateLimits = { maxSteps: 200_000, maxBytes: 1024 * 1024 };

function render(
  text: string,
  dot: Value = null,
  others: Readonly<Record<string, string>> = {},
  limits: Partial<TemplateLimits> = {},
): string {
  const texts = new Map(Object.entries({ ...others, main: text }));
  return createTemplateSet(texts, { ...LIMITS, ...limits }).render('main', dot);
}

test("renders every recorded template as Go's text/template and sprig do", () => {
  const { data, cases } = recordedCases.parse(fixture('cases.json'));
  const results = recordedResults.parse(fixture('results.json'));
  assert.equal(cases.length, results.length);
  for (const [index, { template, others }] of cases.entries()) {
    const want = results[index];
    const make = (): string => render(template, fromJson(data), others);
    if (want && 'text' in want) assert.equal(make(), want.text, template);
    else assert.throws(make, TemplateError, template);
  }
});

function failure(run: () => unknown): TemplateError {
  try {
    run();
  } catch (error) {
    assert.ok(error instanceof TemplateError, String(error));
    return error;
  }
  return assert.fail('nothing was thrown');
}

test('reports the template, line and column of an error', () => {
  const places = [
    ['a\nb {{.x}}', 2, 5],
    ['{{if true}}\n\n{{end', 3, 1],
    ['é{{nosuch}}', 1, 4],
    ['{{range list 1}}\n  {{index . 1}}{{end}}', 2, 5],
  ] as const;
  for (const [text, line, column] of places) {
    const { template, position } = failure(() => render(text, new Map()));
    assert.deepEqual([template, position], ['main', { line, column }], text);
  }
  const inner = failure(() => render('{{template "o" .}}', new Map(), { o: '\n{{.x}}' }));
  assert.deepEqual([inner.template, inner.position.line], ['o', 2]);
});

test('ranges over integers and accepts else with, as newer Go does', () => {
  assert.equal(render('{{range 3}}{{.}}{{end}}{{range 0}}{{else}}none{{end}}'), '012none');
  assert.equal(render('{{range $i := 2}}<{{$i}}>{{end}}'), '<0><1>');
  assert.equal(render('{{with 0}}a{{else with 2}}{{.}}{{else}}c{{end}}'), '2');
});

test('finds a template that another template defines, and ignores a broken template', () => {
  assert.equal(render('{{template "d" 1}}', null, { o: '{{define "d"}}<{{.}}>{{end}}' }), '<1>');
  assert.equal(render('fine', null, { broken: '{{if}}' }), 'fine');
});

test('refuses functions that read the clock, random numbers, keys or the host, by name', () => {
  for (const name of ['now', 'date', 'randAlphaNum', 'genCA', 'env', 'expandenv', 'getHostByName'])
    assert.match(failure(() => render(`{{${name}}}`)).reason, new RegExp(`'${name}' is refused`));
});

test('has exactly the functions that template-functions.md lists', () => {
  const document = readFileSync(
    new URL('../../../../docs/explanation/template-functions.md', import.meta.url),
    'utf8',
  );
  const [, list = ''] = /\n## Functions\n([^]*?)\n## /.exec(document) ?? [];
  const listed = [...list.matchAll(/`(\w+)`/g)].map(([, name]) => name);
  assert.deepEqual(listed.toSorted(), listFunctionNames().toSorted());
});

test('reaches no inherited member of JavaScript objects', () => {
  const names = ['constructor', '__proto__', 'toString', 'hasOwnProperty', 'size', 'length'];
  for (const name of names) {
    for (const dot of [new Map(), 'text', [1n], 1n, true, null] as Value[])
      failure(() => render(`{{.${name}}}`, dot));
    failure(() => render(`{{${name}}}`));
    assert.equal(render(`{{index . "${name}"}}`, new Map()), '<no value>');
    failure(() => render(`{{template "${name}"}}`));
  }
});

test('stops endless, too large and too deep templates', () => {
  const bad: Readonly<Record<string, string>> = {
    recursion: '{{define "r"}}{{template "r" .}}{{end}}{{template "r" .}}',
    doubled: '{{define "r"}}{{template "r" .}}{{template "r" .}}{{end}}{{template "r" .}}',
    loops: '{{range until 10000}}{{range until 10000}}{{end}}{{end}}',
    counting: '{{range 1000000000}}{{end}}',
    list: '{{until 1000000000}}',
    steps: '{{untilStep 0 9000000000000000000 1}}',
    repeat: '{{repeat 1000000000 "x"}}',
    width: '{{printf "%1000000000d" 1}}',
    star: '{{printf "%*d" 1000000000 1}}',
    precision: '{{printf "%.1000000f" 1.0}}',
    text: '{{$x := "0123456789"}}{{range until 100}}{{$x = print $x $x}}{{end}}',
    shared: '{{$x := list 1}}{{range until 100}}{{$x = list $x $x}}{{end}}{{$x}}',
    json: '{{$x := list 1}}{{range until 100}}{{$x = list $x $x}}{{end}}{{toJson $x}}',
    copy: '{{$x := list 1}}{{range until 100}}{{$x = list $x $x}}{{end}}{{len (deepCopy $x)}}',
    deep: '{{$x := list 1}}{{range until 5000}}{{$x = list $x}}{{end}}{{$x}}',
    cycle: '{{$d := dict}}{{$_ := set $d "d" $d}}{{$d}}',
    merged: '{{$d := dict}}{{$_ := set $d "d" $d}}{{merge $d (deepCopy $d)}}',
    replaced: '{{$x := repeat 100000 "a"}}{{replace "a" $x $x}}',
    indented: '{{indent 100000 (repeat 1000 "\\n")}}',
    pattern: '{{regexMatch "(((a{1000}){1000}){1000})" "a"}}',
    path: '{{clean (repeat 300000 "../")}}',
    looks: '{{$s := repeat 1000000 "a"}}{{range until 5000}}{{$_ := sha256sum $s}}{{end}}',
    items: '{{$l := until 99999}}{{range until 5000}}{{$_ := reverse $l}}{{end}}',
    breaks: '{{$l := until 99999}}{{range until 9000}}{{range $l}}{{break}}{{end}}{{end}}',
    nested: '{{if 1}}'.repeat(1000),
    parentheses: `{{${'('.repeat(1000)}1${')'.repeat(1000)}}}`,
  };
  for (const [name, text] of Object.entries(bad))
    assert.ok(
      failure(() => render(text)),
      name,
    );
});

/** Expects that the template needs at least so many steps. */
function requiresSteps(least: number, text: string, dot: Value = null): void {
  const { reason } = failure(() => render(text, dot, {}, { maxSteps: least - 1 }));
  assert.match(reason, /too many steps/, text.slice(0, 80));
}

test('counts steps for loops, conditions, lookups, literals and functions', () => {
  requiresSteps(60_000, '{{range 10000}}{{if 0}}{{end}}{{if 0}}{{end}}{{end}}');
  requiresSteps(100_000, `{{range 1000}}{{and ${'1 '.repeat(100)}}}{{end}}`);
  requiresSteps(
    100_000,
    `{{$d := dict}}{{$_ := set $d "d" $d}}{{range 1000}}{{with $d${'.d'.repeat(99)}}}{{end}}{{end}}`,
  );
  requiresSteps(60_000, `{{"${'\\n'.repeat(250_000)}"}}`);
  const long = 'a'.repeat(100_000);
  requiresSteps(
    100_000,
    '{{sortAlpha .}}',
    Array.from({ length: 64 }, (_none, index) => `${long}${index}`),
  );
  requiresSteps(
    100_000,
    '{{range .}}{{end}}',
    new Map(Array.from({ length: 64 }, (_none, index) => [`${long}${index}`, 1n])),
  );
  for (const name of ['b32enc', 'js', 'quote', 'snakecase', 'split ""', 'swapcase', 'title'])
    requiresSteps(25_000, `{{$_ := ${name} .}}`, long);
  requiresSteps(
    20_000,
    '{{has "b" .}}{{uniq .}}',
    Array.from({ length: 100 }, () => long),
  );
});

test('counts steps for the size of a pattern and for its matches', () => {
  const empty = '(?:'.repeat(4) + '){1000}'.repeat(4);
  requiresSteps(150_000, `{{regexMatch "${empty}" "a"}}`);
  requiresSteps(100_000, `{{regexMatch "(?:[${'b-c'.repeat(100)}a]){1000}$" .}}`, 'a'.repeat(2000));
  requiresSteps(
    100_000,
    '{{regexReplaceAll "a" . "$0"}}{{regexReplaceAll "(?s)^.*$" . .}}',
    '$0'.repeat(2000),
  );
  assert.match(
    failure(() => render(`{{regexMatch "${'()'.repeat(40)}" "a"}}`)).reason,
    /32 groups/,
  );
});

test('refuses to join a list into a text beyond the limit', () => {
  const { reason } = failure(() =>
    render(
      '{{join "" .}}',
      Array.from({ length: 8 }, () => 'a'.repeat(300_000)),
    ),
  );
  assert.match(reason, /is too long/);
});

test('allows at most 199 declared variables, and any number of assignments', () => {
  const declared = (count: number): string =>
    Array.from({ length: count }, (_none, index) => `{{$v${index} := 1}}`).join('');
  assert.equal(render(`${declared(199)}{{$v0 = 2}}{{$v0}}`), '2');
  assert.match(failure(() => render(declared(200))).reason, /200 variables/);
});

test('reports the template of an error that JavaScript throws', () => {
  const deep = Array.from({ length: 20_000 }).reduce<Value>((inner) => [inner], null);
  for (const text of ['{{urlquery (printf "%c" 55296)}}', '{{deepEqual . .}}'])
    assert.equal(failure(() => render(text, deep)).template, 'main');
});

test('keeps the definitions in a value from other templates', () => {
  const set = createTemplateSet(new Map([['other', '{{template "d"}}']]), LIMITS);
  const value = '{{define "d"}}secret{{end}}{{template "d"}}';
  assert.equal(set.renderText('value', value, null), 'secret');
  assert.equal(set.renderText('value', value, null), 'secret');
  assert.match(failure(() => set.render('other', null)).reason, /"d" is not defined/);
  assert.match(
    failure(() => set.renderText('next', '{{template "d"}}', null)).reason,
    /not defined/,
  );
});

test('matches hostile patterns without backtracking', () => {
  const text = 'a'.repeat(20_000);
  assert.equal(render('{{regexMatch "^(a+)+$" .}}', `${text}b`), 'false');
  assert.equal(render('{{regexMatch "^(a|aa)*b$" .}}', text), 'false');
});

test('limits the output in bytes', () => {
  assert.equal(render('{{range 10}}é{{end}}', null, {}, { maxBytes: 20 }), 'é'.repeat(10));
  failure(() => render('{{range 10}}é{{end}}', null, {}, { maxBytes: 19 }));
});

test('parses hostile text of 200,000 characters', () => {
  const hostile = [
    `{{${' '.repeat(200_000)}`,
    `${' '.repeat(200_000)}{{- 1}}`,
    '{{'.repeat(100_000),
    `{{"${'\\'.repeat(200_000)}`,
    `{{${'.a'.repeat(100_000)}`,
    `{{${'$x '.repeat(60_000)}`,
    '{{/*'.repeat(50_000),
  ];
  for (const text of hostile)
    try {
      render(text);
    } catch (error) {
      assert.ok(error instanceof TemplateError, String(error));
    }
});
