import assert from 'node:assert/strict';
import { test } from 'node:test';
import { opcode } from '#shared/contract/opcode.ts';
import { isWithin, type Scope } from '#shared/contract/submitter.ts';
import { createAuthorize } from '../../../noded/operations/authorize.ts';
import { instanceRecord } from '../support/records.ts';

const INSTANCES: Record<string, readonly string[]> = {
  'a-web': [],
  tagged: ['team-a'],
  foreign: ['team-b'],
  'a-identified': ['gnt:identity=vault'],
};
const withoutQuota = (): Promise<void> => Promise.resolve();
const authorize = createAuthorize(
  {
    findByName: (name) =>
      Promise.resolve(instanceRecord({ name }, { tags: [...(INSTANCES[name] ?? [])] })),
  },
  withoutQuota,
);
const bound: Scope = { tags: ['team-a'], names: ['a-*'], links: ['br-a', 'nat-*'] };
const ask = (asked: object, scope: Scope | null = bound) =>
  authorize(opcode.parse(asked), { user: 'alice', scope }, 1);

test('who is bound has everything done with theirs, and nothing with others', async () => {
  const acts = [
    ...['SHUTDOWN', 'REMOVE', 'STARTUP', 'REINSTALL', 'REBOOT', 'QUERY_DATA', 'SET_PARAMS'],
  ].map((act) => `INSTANCE_${act}`);
  for (const act of acts) {
    for (const name of ['a-web', 'tagged']) await ask({ opcode: act, name });
    await assert.rejects(ask({ opcode: act, name: 'foreign' }), { code: 'INSTANCE_NOT_FOUND' });
    await ask({ opcode: act, name: 'foreign' }, null);
  }
});

test('who is bound makes and renames within their own names and tags', async () => {
  const create = { opcode: 'INSTANCE_CREATE', osType: 'debian' };
  await ask({ ...create, name: 'a-new' });
  await ask({ ...create, name: 'new', tags: ['team-a'] });
  for (const asked of [
    { ...create, name: 'new' },
    { ...create, name: 'a-new', tags: ['team-b'] },
    { ...create, name: 'a-new', importFrom: 'foreign' },
    { opcode: 'INSTANCE_RENAME', name: 'a-web', newName: 'b-web' },
  ]) {
    await assert.rejects(ask(asked), { code: 'NOT_ALLOWED' }, JSON.stringify(asked));
  }
  await ask({ opcode: 'INSTANCE_RENAME', name: 'a-web', newName: 'a-shop' });
});

test('who is bound changes neither tags nor what belongs to all', async () => {
  for (const asked of [
    { opcode: 'INSTANCE_SET_PARAMS', name: 'a-web', addTags: ['team-b'] },
    { opcode: 'INSTANCE_SET_PARAMS', name: 'tagged', removeTags: ['team-a'] },
    { opcode: 'INSTANCE_SET_PARAMS', name: 'tagged', tags: [] },
    { opcode: 'CLUSTER_SET_PARAMS', addTags: ['x'] },
    { opcode: 'OS_SET_PARAMS', name: 'debian', trusted: true },
    { opcode: 'INSTANCE_ADOPT', name: 'a-web' },
    { opcode: 'BACKUP_EXPORT', name: 'a-web' },
    { opcode: 'BACKUP_REMOVE', name: 'a-web' },
  ]) {
    await assert.rejects(ask(asked), { code: 'NOT_ALLOWED' }, JSON.stringify(asked));
  }
});

test('a bound user gives no identity to an instance, with any tag of the scope', async () => {
  const scope = { tags: ['gnt:identity', 'gnt:identity=vault', 'team-a'], names: ['a-*'] };
  const create = { opcode: 'INSTANCE_CREATE', osType: 'debian', name: 'a-new' };
  const change = { opcode: 'INSTANCE_SET_PARAMS', name: 'a-web' };
  for (const asked of [
    { ...create, tags: ['gnt:identity'] },
    { ...create, tags: ['team-a', 'gnt:identity=vault'] },
    { ...change, tags: ['gnt:identity'] },
    { ...change, addTags: ['gnt:identity=vault'] },
    { ...change, name: 'a-identified', removeTags: ['gnt:identity=vault'] },
    { opcode: 'INSTANCE_COPY', name: 'a-identified', newName: 'a-copy' },
    { opcode: 'CLUSTER_SET_PARAMS', addTags: ['gnt:identity'] },
  ]) {
    await assert.rejects(ask(asked, scope), { code: 'NOT_ALLOWED' }, JSON.stringify(asked));
    await ask(asked, null);
  }
  await ask({ ...create, tags: ['team-a'] }, scope);
  await ask({ opcode: 'INSTANCE_COPY', name: 'a-web', newName: 'a-copy' }, scope);
});

test('who is bound names no archive for a BootEnv but its own', async () => {
  const customize = { 'bootenv-customize': '{"rescue":{"OS":{}}}' };
  for (const field of ['osParameters', 'osParametersPrivate', 'osParametersSecret']) {
    const create = { opcode: 'INSTANCE_CREATE', osType: 'debian', name: 'a-new' };
    for (const asked of [create, { opcode: 'INSTANCE_SET_PARAMS', name: 'a-web' }]) {
      await assert.rejects(ask({ ...asked, [field]: customize }), { code: 'NOT_ALLOWED' }, field);
      await ask({ ...asked, [field]: customize }, null);
      await ask({ ...asked, [field]: { color: 'blue' } });
    }
  }
});

test('a bound user connects NICs to the networks of the user and to networks for everyone', async () => {
  const create = { opcode: 'INSTANCE_CREATE', osType: 'debian', name: 'a-new' };
  const change = { opcode: 'INSTANCE_SET_PARAMS', name: 'a-web' };
  const withNic = (nic: object): readonly object[] => [
    { ...create, nics: [{}, nic] },
    { ...change, nics: [{ action: 'add', nic }] },
    { ...change, nics: [{ action: 'modify', which: 0, changes: nic }] },
  ];
  for (const nic of [
    { link: 'br-management' },
    { networkName: 'br0' },
    { networkName: 'management' },
    { mode: 'user', link: 'br-b' },
  ])
    for (const asked of withNic(nic)) {
      await assert.rejects(ask(asked), { code: 'NOT_ALLOWED' }, JSON.stringify(asked));
      await ask(asked, null);
    }
  for (const nic of [
    {},
    { mode: 'user' },
    { link: 'br0' },
    { link: 'br-a' },
    { networkName: 'nat-1' },
  ])
    for (const asked of withNic(nic)) await ask(asked);
  await ask({ ...change, nics: [{ action: 'remove', which: 0 }] });
});

test('a pattern fits whole names only, and costs no time however it is made', () => {
  const fits = (pattern: string, name: string): boolean =>
    isWithin({ tags: [], names: [pattern] }, { name, tags: [] });
  for (const [pattern, name] of [
    ['web1', 'web1'],
    ['web*', 'web'],
    ['*.a.example', 'x.a.example'],
    ['a*b*c', 'aXbYbZc'],
    ['*', 'anything'],
  ] as const)
    assert.ok(fits(pattern, name), `${pattern} ${name}`);
  for (const [pattern, name] of [
    ['web1', 'web10'],
    ['web*', 'my-web'],
    ['*.a.example', 'a.example.evil'],
    ['aa*aa', 'aaa'],
    ['a.b', 'axb'],
  ] as const)
    assert.ok(!fits(pattern, name), `${pattern} ${name}`);
  assert.ok(!fits(`${'a*'.repeat(100)}b`, 'a'.repeat(255)));
});

test('a bound user lowers the limits of an instance, and raises none above the default', async () => {
  const asked = (parameters: object): object[] => [
    { opcode: 'INSTANCE_CREATE', osType: 'debian', name: 'a-new', ...parameters },
    { opcode: 'INSTANCE_SET_PARAMS', name: 'a-web', ...parameters },
  ];
  for (const hvparams of [
    { metadata_request_rate: 201 },
    { metadata_request_burst: 401 },
    { metadata_connections: 65 },
    { metadata_connection_rate: 401 },
  ]) {
    for (const opcode of asked({ hvparams })) {
      await assert.rejects(ask(opcode), { code: 'NOT_ALLOWED' }, JSON.stringify(opcode));
      await ask(opcode, null);
    }
  }
  for (const opcode of asked({ hvparams: { metadata_request_rate: 200, metadata_connections: 1 } }))
    await ask(opcode);
  const install = { installParameters: { metadata_connections: 10_000 } };
  for (const opcode of asked(install)) await assert.rejects(ask(opcode), { code: 'NOT_ALLOWED' });
});

test('a bound user gets no more memory and processors than the node has', async () => {
  for (const beparams of [{ memoryMiB: 16_777_216 }, { vcpus: 255 }]) {
    const create = { opcode: 'INSTANCE_CREATE', osType: 'debian', name: 'a-new', beparams };
    await assert.rejects(ask(create), { code: 'NOT_ALLOWED' });
    await ask(create, null);
  }
});

test('a bound user keeps the limits that an unbound user has raised', async () => {
  const own = createAuthorize(
    {
      findByName: (name) =>
        Promise.resolve(instanceRecord({ name }, { hvparams: { metadata_connections: 500 } })),
    },
    withoutQuota,
  );
  const change = (connections: number): Promise<void> =>
    own(
      opcode.parse({
        ...{ opcode: 'INSTANCE_SET_PARAMS', name: 'a-web' },
        hvparams: { metadata_connections: connections },
      }),
      { user: 'alice', scope: bound },
      1,
    );
  await change(500);
  await assert.rejects(change(501), { code: 'NOT_ALLOWED' });
});

test('every operation that takes resources is charged to the quota of the user who asks', async () => {
  const charged: unknown[] = [];
  const charging = createAuthorize(
    { findByName: (name) => Promise.resolve(instanceRecord({ name })) },
    (job, { name }, { user }) => {
      charged.push([job, name, user]);
      return Promise.resolve();
    },
  );
  const submitter = { user: 'alice', scope: bound };
  for (const [job, asked] of [
    { opcode: 'INSTANCE_CREATE', osType: 'debian', name: 'a-new' },
    { opcode: 'INSTANCE_SET_PARAMS', name: 'a-web', beparams: { vcpus: 2 } },
    { opcode: 'INSTANCE_SHUTDOWN', name: 'a-web' },
  ].entries())
    await charging(opcode.parse(asked), submitter, job);
  assert.deepEqual(charged, [
    [0, 'a-new', 'alice'],
    [1, 'a-web', 'alice'],
  ]);
});
