import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findDifference, readTour } from './support/read-tour.ts';

const page = (info: string, ...lines: readonly string[]): string =>
  ['# Page', `\`\`\`${info}`, ...lines, '```', 'text', ''].join('\n');

test('commands have their host, continued lines, here documents and output', () => {
  const steps = readTour(
    page('console', 'node2# a \\', '  b', 'out', '# cat <<' + "'END'", '# no prompt', 'END', '…'),
  );
  assert.deepEqual(steps, [
    { host: 'node2', command: 'a \\\n  b', expected: ['out'] },
    { host: '', command: "cat <<'END'\n# no prompt\nEND", expected: ['…'] },
  ]);
});

test('blocks with no-run are left out, and need a reason', () => {
  assert.deepEqual(readTour(page('console no-run reason="needs a disk"', '# a')), []);
  assert.deepEqual(readTour(page('sh', '# a')), []);
  assert.throws(() => readTour(page('console no-run', '# a')), /without a reason/);
});

test('output differs where a line is missing, added or other', () => {
  assert.equal(findDifference(['a 1', '…', 'b'], ['a 27', 'x', 'b']), undefined);
  assert.equal(findDifference(['a', 'b'], ['a', 'x', 'b']), 'b');
  assert.equal(findDifference(['a'], ['a', 'b']), 'nothing more after line 1');
  assert.equal(findDifference([], ['a']), 'nothing more after line 0');
});
