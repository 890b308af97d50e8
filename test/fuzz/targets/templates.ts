import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import {
  createTemplateSet,
  listFunctionNames,
} from '../../../noded/netboot/template/render-templates.ts';
import { TemplateError } from '../../../noded/netboot/template/template-error.ts';
import { fromJson, type Value } from '../../../noded/netboot/template/values.ts';
import type { SeededRandom } from '../../lab/seeded-random.ts';
import { mutate } from '../mutate.ts';
import { assertNoCrash, openPure, type Target } from '../target.ts';

/** Less than a plan's limits, to keep cases short. Expensive steps still show. */
const LIMITS = { maxSteps: 500, maxBytes: 64 * 1024 };
const casesFile = z.object({
  data: z.record(z.string(), z.unknown()),
  cases: z.array(z.object({ template: z.string() })),
});
const fixture = casesFile.parse(
  JSON.parse(
    readFileSync(new URL('../../../fixtures/templates/cases.json', import.meta.url), 'utf8'),
  ),
);
const seeds = fixture.cases.map(({ template }) => template);
const names = listFunctionNames();
const VALUES = [
  ...Object.keys(fixture.data).map((name) => `.${name}`),
  ...['0', '1', '-1', '3', '200', '1e9', '9223372036854775807', '"a"', '""', '" "', '"(a+)+$"'],
  ...['$x', '$x', '.', 'nil', 'true', '"%v"', '"%0999d"', '(list .l .m .s)', '(dict "k" .l)'],
];

/**
 * Checks templates of boot environments: they are rendered or refused with a position, at a cost
 * within their steps, and never crash.
 */
export function templatesTarget(render: typeof renderText = renderText): Target {
  const dot = fromJson(fixture.data);
  return {
    name: 'templates',
    // Most inputs call a function in a loop, or until the limit of steps.
    inputsPerCase: 5,
    generate,
    open: () => openPure((input) => check(input.toString('utf8'), dot, render)),
  };
}

function renderText(text: string, dot: Value): string {
  return createTemplateSet(new Map([['t', text]]), LIMITS).render('t', dot);
}

/**
 * Returns a changed template of the comparison with Go, or calls of random functions with random
 * values.
 */
function generate(random: SeededRandom): Buffer {
  const body = random.below(2) === 0 ? random.pick(seeds) : `{{${call(random, 3)}}}`;
  const bytes = Buffer.from(surround(body, random));
  return random.below(3) === 0 ? mutate(bytes, random) : bytes;
}

function call(random: SeededRandom, depth: number): string {
  const values = Array.from({ length: random.below(4) }, () =>
    depth > 0 && random.below(3) === 0 ? `(${call(random, depth - 1)})` : random.pick(VALUES),
  );
  const pipe = random.below(4) === 0 ? ` | ${random.pick(names)}` : '';
  return `${random.pick(names)} ${values.join(' ')}${pipe}`;
}

/** Adds a large value and repetition. */
function surround(body: string, random: SeededRandom): string {
  const large = random.pick(['repeat 2000 "ab "', 'until 100', '.multi', '.multi']);
  const again = random.pick([
    (text: string) => text,
    (text: string) => `{{range until 40}}${text}{{end}}`,
    (text: string) => `{{define "r"}}${text}{{template "r" .}}{{end}}{{template "r" .}}`,
    (text: string) => `{{with $x}}${text}{{else}}${text}{{end}}`,
  ]);
  return `{{$x := ${large}}}${again(body)}`;
}

function check(text: string, dot: Value, render: typeof renderText): void {
  try {
    const made = render(text, dot);
    assert.ok(Buffer.byteLength(made) <= LIMITS.maxBytes, `${made.length} characters`);
  } catch (error) {
    if (!(error instanceof TemplateError)) throw error;
    assertNoCrash(error);
    assert.ok(error.position.line >= 1 && error.position.column >= 1, 'a place of no text');
  }
}
