import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  instanceFields,
  type InstanceRow,
  summaryFields,
} from '../../../cluster-cli/fields/instance-fields.ts';
import { globToRegex, parseFilter } from '../../../cluster-cli/render/filter.ts';
import { findField, parseSort, selectFields } from '../../../cluster-cli/render/select.ts';
import { suggest } from '#shared/errors/suggest.ts';
import { renderTable } from '../../../cluster-cli/render/table.ts';
import { sampleInstance } from '../support/samples.ts';

const running = sampleInstance();
const stopped = sampleInstance({
  name: 'db1',
  status: 'ADMIN_down',
  running: null,
  osType: null,
  communication: false,
  tags: [],
  beparams: { memoryMiB: 512, vcpus: 1 },
  disks: [],
});
const both = [running, stopped];
const plain = { hasHeaders: true, separator: null, units: 'h' } as const;

function table(output: string | undefined, options = {}): readonly string[] {
  return renderTable(selectFields(instanceFields, output), both, { ...plain, ...options });
}

test('the columns are those of Ganeti, aligned, with numbers to the right', () => {
  assert.deepEqual(table(undefined), [
    'Instance         Hypervisor OS              Primary_node Status     Memory',
    'web1.example.com kvm        debian+bookworm node1        running      1.0G',
    'db1              kvm        -               node1        ADMIN_down      -',
  ]);
});

test('a separator stands alone between fields, and sizes are then plain MiB', () => {
  assert.deepEqual(table('name,oper_ram,disk.sizes,tags', { separator: ':', units: 'm' }), [
    'Instance:Memory:Disk_sizes:Tags',
    'web1.example.com:1024:10240:db,prod',
    'db1:-:-:-',
  ]);
});

test('a plus adds to the usual fields, and units can be chosen', () => {
  const lines = table('+be/memory,disk.size/0', { hasHeaders: false, units: 'g' });
  assert.match(lines[0] ?? '', / 1\.0 +10\.0$/);
});

test('an unknown field is refused with the nearest one', () => {
  assert.throws(() => table('name,statsu'), {
    code: 'USAGE',
    message: "unknown field 'statsu'",
    hint: 'Did you mean status?',
  });
  assert.throws(() => table('help'), { hint: 'gnt-instance list-fields' });
});

test('control characters of a value do not reach the table', () => {
  const evil = sampleInstance({ tags: ['a\u001b[2Jb\nc'] });
  const lines = renderTable(selectFields(instanceFields, 'tags'), [evil], plain);
  assert.deepEqual(lines, ['Tags', 'ab c']);
});

const matches = (filter: string): readonly string[] => {
  const predicate = parseFilter(filter);
  return both
    .filter((instance) => predicate((name) => findField(instanceFields, name).get(instance)))
    .map(({ name }) => name);
};
const filters: readonly (readonly [string, readonly string[]])[] = [
  ['status == "running"', ['web1.example.com']],
  ["status != 'running'", ['db1']],
  ['be/memory > 512', ['web1.example.com']],
  ['be/memory >= 512 and be/memory < 1024', ['db1']],
  ['not communication', ['db1']],
  ['communication == False', ['db1']],
  ['"db" in tags', ['web1.example.com']],
  ['name =* "*.example.com"', ['web1.example.com']],
  ['name !* "web?*"', ['db1']],
  ['name =~ m/^DB/i', ['db1']],
  ['name !~ "^db"', ['web1.example.com']],
  ['(name == "db1" or name == "x") and (not (be/vcpus == 2))', ['db1']],
  ['name == "a" or name == "db1" and status == "ADMIN_down"', ['db1']],
  ['disk.size/0 == 10240', ['web1.example.com']],
];
for (const [filter, expected] of filters) {
  test(`the filter ${filter} selects ${expected.join(', ')}`, () => {
    assert.deepEqual(matches(filter), expected);
  });
}

test('a filter that is not understood is refused with its text', () => {
  for (const wrong of [
    '',
    'name ==',
    '== 1',
    '(name',
    'name == 1 2',
    'a in',
    '"x" tags',
    'name =~ "("',
    'name < "x"',
    '#',
  ]) {
    assert.throws(() => parseFilter(wrong), { code: 'USAGE' }, wrong);
  }
});

test('sorting counts numbers within names, and reverses with a minus', () => {
  const items = ['web10', 'web2', 'db'].map((name) => sampleInstance({ name }));
  const sortItems = (some: readonly InstanceRow[], sort: string): readonly InstanceRow[] => {
    const { keysOf, compare } = parseSort(instanceFields, sort);
    return some.toSorted((a, b) => compare(keysOf(a), keysOf(b)));
  };
  const names = (sort: string) => sortItems(items, sort).map(({ name }) => name);
  assert.deepEqual(names('name'), ['db', 'web2', 'web10']);
  assert.deepEqual(names('-name'), ['web10', 'web2', 'db']);
  assert.deepEqual(names('status,-name'), ['web10', 'web2', 'db']);
  const [here, nowhere] = [
    sampleInstance({ name: 'a', osType: 'x' }),
    sampleInstance({ name: 'b', osType: null }),
  ];
  const sorted = sortItems([here, nowhere], 'os');
  assert.deepEqual(sorted, [nowhere, here], 'what is not available comes first');
});

test('a glob matches whole names, and its other characters mean themselves', () => {
  assert.equal(globToRegex('web*').test('web1.example.com'), true);
  assert.equal(globToRegex('w.b1').test('web1'), false);
});

test('the nearest word is suggested, and none when none is near', () => {
  assert.equal(suggest('lsit', ['list', 'info', 'log']), 'list');
  assert.equal(suggest('xyzzy', ['list', 'info']), null);
});

const orphan = { uuid: running.uuid, name: 'lost', pid: 7, tap: null, node: 'node1' };
for (const { name, get, madeOf } of summaryFields.fields) {
  test(`column ${name} reads nothing of an instance that lists do not ask for it`, () => {
    const asked = new Set<string>(['status', ...madeOf]);
    for (const row of both) {
      const told = new Proxy(row, {
        get(target, key, receiver): unknown {
          assert.ok(asked.has(String(key)), `${String(key)} was not asked for`);
          return Reflect.get(target, key, receiver);
        },
        ownKeys: () => assert.fail('all that there is'),
      });
      get(told);
    }
    get({ ...orphan, status: 'ERROR_orphan' });
  });
}
