import assert from 'node:assert/strict';
import { test } from 'node:test';
import { opcode } from '#shared/contract/opcode.ts';

const CREATE = { opcode: 'INSTANCE_CREATE', name: 'web1', osImage: '/srv/a.raw' } as const;
const MODIFY = { opcode: 'INSTANCE_SET_PARAMS', name: 'web1' } as const;
const GROW = { opcode: 'INSTANCE_GROW_DISK', name: 'web1', disk: 0 } as const;

test('no disk is made of, or grows by, part of a sector', () => {
  const asks = (sizeBytes: number): readonly object[] => [
    { ...CREATE, disks: [{ sizeBytes }] },
    { ...MODIFY, disks: [{ action: 'add', disk: { sizeBytes } }] },
    { ...GROW, amountBytes: sizeBytes },
  ];
  for (const ask of asks(1536)) assert.equal(opcode.safeParse(ask).success, true);
  for (const sizeBytes of [1, 1000, 1537])
    for (const ask of asks(sizeBytes)) {
      const { error } = opcode.safeParse(ask);
      assert.match(error?.issues[0]?.message ?? '', /multiple of 512/, JSON.stringify(ask));
    }
});
