import assert from 'node:assert/strict';
import { test } from 'node:test';
import { opcode, type OpcodeInput } from '#shared/contract/opcode.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { withWholeName } from '../../../../noded/api/http/whole-names.ts';

/** Expands a name on a node with the instance web1.example.com and an orphan. */
async function nameOf(input: OpcodeInput, orphan = 'lost'): Promise<unknown> {
  const meant = await withWholeName(opcode.parse(input), {
    instances: {
      expandName: async (typed) => {
        if (typed === 'web1' || typed === 'web1.example.com') return 'web1.example.com';
        throw new AppError('INSTANCE_NOT_FOUND', `there is no instance '${typed}'`);
      },
    },
    overview: { orphans: async () => [{ name: orphan, uuid: 'u', node: 'n', pid: 1, tap: null }] },
  });
  return 'name' in meant && meant.name;
}

test('the beginning of a name is enough for what takes nothing away', async () => {
  assert.equal(await nameOf({ opcode: 'INSTANCE_STARTUP', name: 'web1' }), 'web1.example.com');
  assert.equal(await nameOf({ opcode: 'BACKUP_EXPORT', name: 'web1' }), 'web1.example.com');
  assert.equal(await nameOf({ opcode: 'INSTANCE_STARTUP', name: 'web9' }), 'web9');
  assert.equal(await nameOf({ opcode: 'BACKUP_REMOVE', name: 'web1' }), 'web1');
  assert.equal(await nameOf({ opcode: 'OS_SET_PARAMS', name: 'web1' }), 'web1');
});

test('what takes disks away wants the whole name, and says it', async () => {
  for (const operation of ['INSTANCE_REMOVE', 'INSTANCE_REINSTALL'] as const) {
    await assert.rejects(nameOf({ opcode: operation, name: 'web1' }), {
      code: 'INSTANCE_NOT_FOUND',
      hint: /full name: web1\.example\.com/,
    });
    const whole = { opcode: operation, name: 'web1.example.com' } as const;
    assert.equal(await nameOf(whole), 'web1.example.com');
  }
  const modify = { opcode: 'INSTANCE_SET_PARAMS', name: 'web1' } as const;
  const added = nameOf({ ...modify, disks: [{ action: 'add', disk: { sizeBytes: 512 } }] });
  assert.equal(await added, 'web1.example.com');
  await assert.rejects(nameOf({ ...modify, disks: [{ action: 'remove', which: 1 }] }), {
    code: 'INSTANCE_NOT_FOUND',
  });
});

test("a machine without a record keeps its name, although another's begins with it", async () => {
  assert.equal(await nameOf({ opcode: 'INSTANCE_REMOVE', name: 'web1' }, 'web1'), 'web1');
  assert.equal(await nameOf({ opcode: 'INSTANCE_ADOPT', name: 'web1' }, 'web1'), 'web1');
});
