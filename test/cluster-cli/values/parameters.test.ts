import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseServices } from '../../../cluster-cli/commands/cluster/services.ts';
import { expandArguments, hasSensitiveArguments } from '../../../cluster-cli/arguments.ts';
import { arrangeByIndex } from '../../../cluster-cli/values/identified.ts';
import {
  readParameters,
  refuseSharedNames,
  withoutUnset,
} from '../../../cluster-cli/values/os-parameters.ts';
import { createValueSource } from '../../../cluster-cli/values/value-source.ts';

const source = { ...createValueSource(), readText: (_option: string, path: string) => `<${path}>` };

test('several occurrences of an option are one list, and typed keys are told', () => {
  const read = readParameters({ option: '-O', texts: ['a=1,b=@f', 'no_c,-d'] }, source);
  assert.deepEqual(read.values, { a: '1', b: '<f>', c: 'False', d: null });
  assert.deepEqual(read.typedKeys, ['a']);
  assert.deepEqual(withoutUnset(read.values), { a: '1', b: '<f>', c: 'False' });
});

test('the same key in two occurrences is refused', () => {
  assert.throws(() => readParameters({ option: '-O', texts: ['a=1', 'a=2'] }, source), {
    message: "Duplicate key 'a' in option -O",
  });
});

test('a whole list may come from a file, one element a line', () => {
  const file = { ...source, readText: () => 'a=1\n\nb=x\\,y,c=3' };
  const read = readParameters({ option: '-O', texts: ['@list'] }, file);
  assert.deepEqual(read, { values: { a: '1', b: 'x,y', c: '3' }, typedKeys: [], flagCount: 0 });
});

test('a name in two visibilities is refused with its name and without its values', () => {
  const sets = {
    public: { password: 'hunter2', x: '1' },
    private: { y: '2' },
    secret: { password: 'hunter3' },
  };
  assert.throws(
    () => refuseSharedNames(sets),
    (error: Error) =>
      error.message ===
      "Cannot assign multiple values to OS parameters. 'password' is public and secret; values are withheld",
  );
});

test('an index that is left out is filled or refused, one that is given twice is refused', () => {
  const item = (ident: string) => ({ ident, item: ident });
  assert.deepEqual(arrangeByIndex('--net', [item('2'), item('0')], '-'), ['0', '-', '2']);
  assert.deepEqual(arrangeByIndex('--net', []), []);
  assert.throws(() => arrangeByIndex('--disk', [item('1')]), { code: 'USAGE' });
  assert.throws(() => arrangeByIndex('--disk', [item('0'), item('0')]), { code: 'USAGE' });
  for (const wrong of ['-1', 'x', '', '1e3', '999999999']) {
    assert.throws(() => arrangeByIndex('--disk', [item(wrong)]), { code: 'USAGE' }, wrong);
  }
});

test('services name two ports and a host, or none, which removes them', () => {
  const warnings: string[] = [];
  const context = { warn: (text: string) => void warnings.push(text) };
  const given = ['apt=3142:127.0.0.1:3142,-old,older=none', 'v6=53:[fd00::1]:5353'];
  assert.deepEqual(parseServices(given, context), {
    apt: { port: 3142, host: '127.0.0.1', hostPort: 3142 },
    old: null,
    older: null,
    v6: { port: 53, host: 'fd00::1', hostPort: 5353 },
  });
  assert.deepEqual(warnings, []);
  assert.deepEqual(parseServices(['apt='], context), { apt: null });
  assert.match(warnings.join(), /write --expose-service apt=none/);
  for (const wrong of ['a=1:h', 'a=0:h:1', 'a=1:h:65536', 'a=1::2', 'a', 'a=x:h:1']) {
    assert.throws(() => parseServices([wrong], context), { code: 'USAGE' }, wrong);
  }
});

test('--wait-ready alone gets its default and does not take the next word', () => {
  assert.deepEqual(expandArguments(['add', '--wait-ready', 'web1']), [
    'add',
    '--wait-ready=600',
    'web1',
  ]);
  assert.deepEqual(expandArguments(['--wait-ready=5', '--', '--wait-ready']), [
    '--wait-ready=5',
    '--',
    '--wait-ready',
  ]);
});

test('arguments that may hold a secret are known in both spellings', () => {
  assert.equal(hasSensitiveArguments(['--os-parameters-secret=x=y']), true);
  assert.equal(hasSensitiveArguments(['--personalization-password', 'x']), true);
  assert.equal(hasSensitiveArguments(['--os-parameters', 'x=y', '--os-parameters-secretx']), false);
});
