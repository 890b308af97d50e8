import assert from 'node:assert/strict';
import { test } from 'node:test';
import { opcode, type Opcode } from '#shared/contract/opcode.ts';
import { confineNics } from '../../../../noded/api/rapi/confine-nics.ts';

const create = (nics: readonly object[]): Opcode =>
  opcode.parse({ opcode: 'INSTANCE_CREATE', name: 'web.test', osImage: 'debian-12', nics });

test('every new NIC of a bound user reaches public addresses only, whatever the user asks for', () => {
  const asked = create([{ mode: 'user' }, { mode: 'user', reach: 'all' }]);
  const confined = confineNics(asked);
  assert.ok(confined.opcode === 'INSTANCE_CREATE');
  assert.deepEqual(
    confined.nics.map(({ reach }) => reach),
    ['public', 'public'],
  );
});

test('a bound user cannot lift the bound of a NIC, and plugging a NIC in elsewhere sets it', () => {
  const confined = confineNics(
    opcode.parse({
      opcode: 'INSTANCE_SET_PARAMS',
      name: 'web.test',
      nics: [
        { action: 'modify', which: 0, changes: { reach: 'all' } },
        { action: 'modify', which: 1, changes: { mode: 'user' } },
        { action: 'add', nic: { mode: 'user', reach: 'all' } },
        { action: 'remove', which: 2 },
      ],
    }),
  );
  assert.ok(confined.opcode === 'INSTANCE_SET_PARAMS');
  assert.partialDeepStrictEqual(confined.nics, [
    { changes: {} },
    { changes: { reach: 'public' } },
    { nic: { reach: 'public' } },
    { action: 'remove' },
  ]);
  assert.equal('reach' in ((confined.nics[0] as { changes?: object }).changes ?? {}), false);
});
