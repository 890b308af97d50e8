import assert from 'node:assert/strict';
import { test } from 'node:test';
import { buildTree } from '../../../metad/dialects/tree.ts';
import { textLeaf } from '../../../metad/view/leaf.ts';

test('a name that is also a folder of other names is listed beside them and can be read', () => {
  const names = ['db', 'db/host', 'db/host/port', 'db/user', 'dc/x', 'e'];
  const leaves = new Map(names.map((name) => [`os/parameters/${name}`, textLeaf(name)]));
  const tree = buildTree(leaves, { endsWithNewline: true });
  const linesOf = (path: string): readonly string[] => {
    const found = tree.get(path);
    assert.ok(found?.kind === 'content' && found.isFolder, path);
    return found.body.toString().trimEnd().split('\n');
  };
  assert.deepEqual(linesOf('os/parameters'), [
    'db',
    'db/host',
    'db/host/port',
    'db/user',
    'dc/',
    'e',
  ]);
  assert.deepEqual(linesOf('os/parameters/dc'), ['x']);
  const read = tree.get('os/parameters/db');
  assert.equal(read?.kind === 'content' && read.body.toString(), 'db');
});
