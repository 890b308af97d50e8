import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Secret } from '#shared/secret/secret.ts';
import {
  runLists,
  type RunListScript,
  type InputValues,
  type RunListName,
} from '#shared/contract/lifecycle.ts';
import type { CollectedLists } from '../../../../noded/instances/run-lists/collect-run-lists.ts';
import {
  planLists,
  refuseImpossible,
  refuseImpossibleInputs,
  refuseMissingInputs,
} from '../../../../noded/instances/run-lists/plan-lists.ts';

const content = Buffer.from('#!/bin/sh\ntrue\n').toString('base64');
type KnownValue = string | Secret | null;
type Declared = NonNullable<RunListScript['inputs']>[number];

function collected(list: RunListName, ...inputs: readonly Declared[]): CollectedLists {
  const script = { name: 'setup', content, inputs };
  const { boot, operational, decommission } = runLists.parse({ [list]: [script] });
  return { lists: { boot, operational, decommission }, attachments: [] };
}

const needed = (name: string): Declared => ({ name, required: true, default: null });
const sources = (inputs: InputValues = {}, ...parameters: readonly string[]) => ({
  inputs,
  parameters: new Set(parameters),
});

test('a required input without a value is missing in whatever list its script is', () => {
  for (const list of ['boot', 'operational', 'decommission'] as const)
    assert.throws(() => refuseMissingInputs(collected(list, needed('HOST')), sources()), {
      code: 'INPUT_MISSING',
      message: `script 'setup' (${list}) requires the input HOST`,
    });
});

test('an input that the run list ignores has no value, one that is blank has', () => {
  const lists = collected('boot', needed('HOST'));
  const ignored = sources({ HOST: { from: 'ignore' } }, 'HOST');
  assert.throws(() => refuseMissingInputs(lists, ignored), { code: 'INPUT_MISSING' });
  refuseMissingInputs(lists, sources({ HOST: { from: 'text', text: '' } }));
});

test('a value is an input’s, else the parameter’s of its name, else its default', () => {
  const own = { ...needed('HOST'), default: { from: 'text', text: 'default' } } as const;
  const lists = collected('boot', own);
  const valueWith = (...given: Parameters<typeof sources>): unknown => {
    refuseMissingInputs(lists, sources(...given));
    return planLists(lists, sources(...given)).lists.boot[0]?.env?.['HOST'];
  };
  assert.deepEqual(valueWith({ HOST: { from: 'text', text: 'input' } }, 'HOST'), { text: 'input' });
  assert.deepEqual(valueWith({}, 'HOST'), { parameter: 'HOST' });
  assert.deepEqual(valueWith({}), { text: 'default' });
});

test('a value that is to be a parameter’s is missing where there is no such parameter, be it a default', () => {
  const from = { from: 'cred', name: 'dbpw' } as const;
  const optional = collected('boot', { name: 'PASSWORD', required: false, default: from });
  assert.throws(() => refuseMissingInputs(optional, sources()), {
    code: 'INPUT_MISSING',
    message: "script 'setup' (boot) requires the input PASSWORD",
  });
  refuseMissingInputs(optional, sources({}, 'dbpw'));
  const undeclared = collected('boot');
  assert.throws(() => refuseMissingInputs(undeclared, sources({ PASSWORD: from })), {
    code: 'INPUT_MISSING',
    message: 'input PASSWORD takes its value from dbpw, which is not an OS parameter',
    hint: 'Define it: --os-parameters-secret dbpw=@FILE',
  });
});

const ofMode = collected('boot', {
  name: 'MODE',
  required: false,
  default: { from: 'text', text: 'default' },
  possible: [
    { from: 'text', text: 'a' },
    { from: 'cred', name: 'mode' },
  ],
});

/** Checks a script whose input MODE has possible values. */
function check(
  inputs: InputValues,
  ...parameters: readonly (readonly [string, KnownValue])[]
): void {
  refuseImpossibleInputs(ofMode, { inputs, parameters: new Map(parameters) });
}

test('a value that is none of the possible values is refused, from wherever it comes, and not shown', () => {
  const refusal = {
    code: 'RUN_LIST_INVALID',
    message: "script 'setup' does not accept the value of its input MODE",
    hint: 'Give one of its possible values: text:a, cred:mode',
  };
  assert.throws(() => check({ MODE: { from: 'text', text: 'hush' } }), refusal);
  assert.throws(() => check({}, ['MODE', 'hush']), refusal);
  assert.throws(() => check({}, ['MODE', new Secret('hush')]), refusal);
  assert.throws(() => check({ MODE: { from: 'cred', name: 'other' } }, ['other', 'hush']), refusal);
});

test('a possible value, the default, no value and a secret that is not known are accepted', () => {
  check({ MODE: { from: 'text', text: 'a' } });
  check({ MODE: { from: 'cred', name: 'mode' } }, ['mode', 'hush']);
  check({ MODE: { from: 'ignore' } });
  check({});
  check({}, ['MODE', 'a']);
  check({}, ['MODE', null]);
});

test('the hint names the first possible values, and only the beginning of long ones', () => {
  const possible = Array.from({ length: 256 }, (_, at) => ({
    from: 'text' as const,
    text: `${at}${'x'.repeat(60_000)}`,
  }));
  const input = { name: 'MODE', required: false, default: null, possible };
  assert.throws(
    () => refuseImpossible({ name: 'setup' }, input, { from: 'text', text: 'hush' }, new Map()),
    { hint: /^Give one of its possible values: text:0x{93,95}…, text:1x.{900,1200} and 246 more$/ },
  );
});
