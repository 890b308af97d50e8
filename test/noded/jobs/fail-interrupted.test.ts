import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hintAfterInterrupt } from '../../../noded/jobs/fail-interrupted.ts';

test('after an interrupted creation the hint is no command that the new record refuses', () => {
  const again = 'Submit the operation again.';
  assert.equal(
    hintAfterInterrupt({ opcode: 'INSTANCE_CREATE', name: 'web1.example.com' }, again),
    'Run gnt-instance reinstall web1.example.com if the instance exists (gnt-instance info web1.example.com). Otherwise: Submit the operation again.',
  );
  assert.equal(hintAfterInterrupt({ opcode: 'INSTANCE_REINSTALL', name: 'web1' }, again), again);
});
