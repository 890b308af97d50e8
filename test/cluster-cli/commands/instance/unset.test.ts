import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readHooks } from '../../../../cluster-cli/commands/instance/parse-documents.ts';
import {
  parseAutostart,
  parseBackendParameters,
  parseHypervisorParameters,
} from '../../../../cluster-cli/commands/instance/parse-options.ts';
import { readRunLists } from '../../../../cluster-cli/commands/instance/run-lists.ts';
import type { Context } from '../../../../cluster-cli/terminal/context.ts';
import { createValueSource } from '../../../../cluster-cli/values/value-source.ts';

const source = createValueSource();

/** Returns a context with the members that reading options uses. */
function collect(): { readonly context: Context; readonly warnings: readonly string[] } {
  const warnings: string[] = [];
  const warn = (text: string): void => void warnings.push(text);
  return { context: { values: source, warn } as unknown as Context, warnings };
}

test('none unsets hooks and run lists without a warning, default with one that names none', () => {
  const { context, warnings } = collect();
  assert.deepEqual(readHooks(['none'], context), []);
  assert.equal(readRunLists({ runList: 'none' }, context), null);
  assert.deepEqual(warnings, []);
  assert.deepEqual(readHooks(['default'], context), []);
  assert.equal(readRunLists({ bootScript: ['default'] }, context), null);
  assert.deepEqual(warnings, [
    '--hooks default is deprecated: write --hooks none',
    '--run-list default is deprecated: write --run-list none',
  ]);
});

test('none unsets a known key, as default and -KEY do', () => {
  for (const text of ['memory=none', 'memory=default', '-memory'])
    assert.deepEqual(parseBackendParameters([text], source), { memoryMiB: null }, text);
  for (const text of ['boot_order=none', 'boot_order=default', '-boot_order'])
    assert.deepEqual(parseHypervisorParameters('-H', [text], source), { boot_order: null }, text);
});

test('none sets a key of --autostart to its default', () => {
  const { priority, delayS, restarts, lostSecrets } =
    parseAutostart(['priority=none,delay=default,-restarts,lost_secrets=none'], source) ?? {};
  assert.deepEqual([priority, delayS, restarts, lostSecrets], [100, 0, 0, 'start']);
});
