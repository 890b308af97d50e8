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
