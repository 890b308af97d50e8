import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseSizeBytes, parseSizeMiB } from '../../../cluster-cli/values/size.ts';

test('sizes are MiB without a unit and Ganeti units with one', () => {
  const sizes = {
    '512': 512,
    '512M': 512,
    '10g': 10_240,
    '1.5G': 1536,
    '2t': 2_097_152,
    '10 GiB': 10_240,
    '10GB': 10_240,
    '.5g': 512,
    '1500k': 2,
    '0.1': 1,
  };
  for (const [text, expected] of Object.entries(sizes)) {
    assert.equal(parseSizeMiB('-s', text), expected, text);
  }
  assert.equal(parseSizeBytes('-s', '3M'), 3 * 1024 * 1024);
});

test('a disk of a few MiB that was not said to be is taken for a mistake', () => {
  assert.throws(() => parseSizeBytes('-s', '2'), { code: 'USAGE', hint: /Write 2G/ });
  assert.equal(parseSizeBytes('-s', '16'), 16 * 1024 * 1024);
});

test('what is no size is refused by name', () => {
  for (const text of [
    '',
    '0',
    '0M',
    '-1G',
    '10X',
    '1e3',
    'G',
    '1.2.3G',
    '1000B',
    '1000iB',
    '99999999999T',
    '١G',
  ]) {
    assert.throws(() => parseSizeMiB('--os-size', text), {
      code: 'USAGE',
      message: `option --os-size: '${text}' is not a size`,
    });
  }
});
