import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseDisks } from '../../../../cluster-cli/commands/instance/parse-options.ts';
import { createValueSource } from '../../../../cluster-cli/values/value-source.ts';

test('a disk without its number is refused with a hint that can be followed', () => {
  for (const text of ['10G', 'size=10G', 'root:name=root'])
    assert.throws(() => parseDisks({ disk: [text] }, createValueSource()), {
      code: 'USAGE',
      message: `option --disk: '${text.split(':')[0]}' is not an index`,
      hint: 'Write --disk N:key=value, for example --disk 0:size=10G',
    });
  assert.equal(parseDisks({ disk: ['0:size=10G'] }, createValueSource()).length, 1);
  assert.throws(() => parseDisks({ disk: ['0'] }, createValueSource()), {
    hint: 'Write --disk 0:size=10G',
  });
});

test('an empty file name is named as one', () => {
  assert.throws(() => createValueSource().readBytes('--user-data', ''), {
    message: 'option --user-data: the name of the file is empty',
  });
});
