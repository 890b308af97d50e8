import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type Opcode,
  opcode as schema,
  type OpcodeInput,
  type OpcodeName,
} from '#shared/contract/opcode.ts';
import { traitsOf } from '../../../noded/jobs/opcode-traits.ts';
import { parseOpcode } from '../support/opcodes.ts';

const all = schema.options.map(({ shape }) => {
  const name: OpcodeName = shape.opcode.value;
  // The table is looked up by the name alone.
  return { name, traits: traitsOf({ opcode: name } as Opcode) };
});

const locksOf = (input: OpcodeInput, orphans: readonly { name: string; uuid: string }[] = []) => {
  const opcode = parseOpcode(input);
  return traitsOf(opcode).locks(opcode, orphans);
};

test('only operations on instances and exports of them name an instance', () => {
  for (const { name, traits } of all) {
    const isExpected = name.startsWith('INSTANCE_') || name === 'BACKUP_EXPORT';
    assert.equal(traits.names !== 'other', isExpected, name);
  }
});

test('bound users submit operations on instances, except adoptions, placements and exports', () => {
  const refused = all.filter(
    ({ traits }) => traits.names !== 'other' && traits.boundUsers !== 'submit',
  );
  assert.deepEqual(
    refused.map(({ name }) => name),
    ['INSTANCE_ADOPT', 'INSTANCE_MOVE', 'INSTANCE_MIGRATE', 'INSTANCE_FAILOVER', 'BACKUP_EXPORT'],
  );
});

test('only three operations run on a node that left its cluster', () => {
  const anywhere = all.filter(({ traits }) => traits.runsOn === 'any-node');
  assert.deepEqual(
    anywhere.map(({ name }) => name),
    ['BACKUP_REMOVE', 'BOOTENV_DESTROY_ISO', 'NODE_SET_PARAMS'],
  );
});

test('an orphan has the same locks by name and by UUID', () => {
  const orphan = { name: 'web1', uuid: '11111111-1111-4111-8111-111111111111' };
  const locks = [`instance/${orphan.uuid}`, 'instance/web1'];
  for (const name of [orphan.name, orphan.uuid]) {
    assert.deepEqual(locksOf({ opcode: 'INSTANCE_ADOPT', name }, [orphan]), locks);
    assert.deepEqual(locksOf({ opcode: 'INSTANCE_REMOVE', name }, [orphan]), locks);
  }
});

test('an operation on two instances locks both in one order', () => {
  const locks = ['instance/a1', 'instance/b1'];
  assert.deepEqual(locksOf({ opcode: 'INSTANCE_RENAME', name: 'a1', newName: 'b1' }), locks);
  assert.deepEqual(locksOf({ opcode: 'INSTANCE_COPY', name: 'b1', newName: 'a1' }), locks);
});

test('a change of an instance takes space only with disks, and removes only named disks', () => {
  const change = (disks: readonly object[]) => {
    const opcode = parseOpcode({ opcode: 'INSTANCE_SET_PARAMS', name: 'web1', disks } as never);
    const traits = traitsOf(opcode);
    return [traits.takesSpace?.(opcode), traits.removesDisks?.(opcode)];
  };
  assert.deepEqual(change([]), [false, false]);
  assert.deepEqual(change([{ action: 'add', disk: { sizeBytes: 1_048_576 } }]), [true, false]);
  assert.deepEqual(change([{ action: 'remove', which: 0 }]), [true, true]);
});

const NAME = { name: 'web1' };
const PAIR = { name: 'web1', newName: 'db1' };
/** Locks of each opcode, for an instance, OS, node or export named web1. */
const LOCKS: Readonly<Record<OpcodeName, readonly [given: object, ...locks: readonly string[]]>> = {
  INSTANCE_CREATE: [{ ...NAME, importFrom: 'db1' }, 'export/db1', 'instance/web1'],
  INSTANCE_REINSTALL: [NAME, 'instance/web1'],
  INSTANCE_SET_PARAMS: [NAME, 'instance/web1'],
  INSTANCE_QUERY_DATA: [NAME],
  INSTANCE_REMOVE: [NAME, 'instance/web1'],
  INSTANCE_ADOPT: [NAME, 'instance/web1'],
  INSTANCE_RENAME: [PAIR, 'instance/db1', 'instance/web1'],
  INSTANCE_COPY: [PAIR, 'instance/db1', 'instance/web1'],
  INSTANCE_MOVE: [NAME, 'instance/web1'],
  INSTANCE_MIGRATE: [NAME, 'instance/web1'],
  INSTANCE_FAILOVER: [NAME, 'instance/web1'],
  INSTANCE_STARTUP: [NAME, 'instance/web1'],
  INSTANCE_SHUTDOWN: [NAME, 'instance/web1'],
  INSTANCE_REBOOT: [NAME, 'instance/web1'],
  INSTANCE_GROW_DISK: [NAME, 'instance/web1'],
  INSTANCE_RUN_SCRIPT: [NAME, 'script/web1'],
  INSTANCE_SNAPSHOT: [NAME, 'instance/web1'],
  INSTANCE_RESTORE: [NAME, 'instance/web1'],
  INSTANCE_REMOVE_SNAPSHOT: [NAME, 'instance/web1'],
  BACKUP_EXPORT: [NAME, 'export/web1', 'instance/web1'],
  BACKUP_REMOVE: [NAME, 'export/web1'],
  OS_SET_PARAMS: [{ name: 'debian+minimal' }, 'os/debian'],
  PROFILE_SET_PARAMS: [NAME, 'profiles'],
  PROFILE_REMOVE: [NAME, 'profiles'],
  NETWORK_ADD: [NAME, 'networks'],
  NETWORK_SET_PARAMS: [NAME, 'networks'],
  NETWORK_CONNECT: [NAME, 'networks'],
  NETWORK_DISCONNECT: [NAME, 'networks'],
  NETWORK_REMOVE: [NAME, 'networks'],
  BOOTENV_SET: [NAME, 'bootenvs', 'profiles'],
  BOOTENV_REMOVE: [NAME, 'bootenvs', 'profiles'],
  BOOTENV_UPLOAD_ISO: [{}, 'boot-archives'],
  BOOTENV_DESTROY_ISO: [{}, 'boot-archives', 'bootenvs'],
  CLUSTER_SET_PARAMS: [{}, 'cluster'],
  TEST_DELAY: [{}],
  NODE_SET_PARAMS: [NAME, 'node/web1'],
};
for (const [opcode, [given, ...locks]] of Object.entries(LOCKS)) {
  test(`${opcode} locks ${locks.join(' and ') || 'nothing'}`, () => {
    const asked = { opcode, ...given } as Opcode;
    assert.deepEqual(traitsOf(asked).locks(asked, []), locks);
  });
}

test('an instance that is not imported has one lock', () => {
  const opcode = { opcode: 'INSTANCE_CREATE', name: 'web1' } as Opcode;
  assert.deepEqual(traitsOf(opcode).locks(opcode, []), ['instance/web1']);
});

const some = (isMeant: (traits: (typeof all)[number]['traits']) => boolean): readonly string[] =>
  all.filter(({ traits }) => isMeant(traits)).map(({ name }) => name);
const none = { disks: [] } as unknown as Opcode;

test('each trait has the opcodes that need it', () => {
  assert.deepEqual(
    some((traits) => traits.takesSpace?.(none) === true),
    [
      ...['INSTANCE_CREATE', 'INSTANCE_REINSTALL', 'INSTANCE_COPY', 'INSTANCE_GROW_DISK'],
      ...['INSTANCE_SNAPSHOT', 'INSTANCE_RESTORE', 'BACKUP_EXPORT'],
    ],
  );
  assert.deepEqual(
    some((traits) => traits.removesDisks?.(none) === true),
    ['INSTANCE_REINSTALL', 'INSTANCE_REMOVE'],
  );
  assert.deepEqual(
    some(({ orphan }) => orphan === 'possible'),
    ['INSTANCE_REMOVE'],
  );
  assert.deepEqual(
    some(({ orphan }) => orphan === 'always'),
    ['INSTANCE_ADOPT'],
  );
  assert.deepEqual(
    some(({ names }) => names === 'new-instance'),
    ['INSTANCE_CREATE'],
  );
  assert.deepEqual(
    some(({ boundUsers }) => boundUsers === 'see'),
    ['INSTANCE_ADOPT', 'INSTANCE_MOVE', 'INSTANCE_MIGRATE', 'INSTANCE_FAILOVER'],
  );
  assert.deepEqual(
    some(({ names, runsOn }) => names !== 'other' && runsOn === 'member'),
    ['INSTANCE_CREATE', 'INSTANCE_ADOPT', 'INSTANCE_FAILOVER'],
  );
});
