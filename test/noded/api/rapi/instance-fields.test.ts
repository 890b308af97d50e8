import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { InstanceInfo } from '#shared/contract/instance.ts';
import { instanceFields } from '../../../../noded/api/rapi/instance-fields.ts';
import { sampleInstance } from '../../../cluster-cli/support/samples.ts';

const NAMES = ['boot', 'boot_stage', 'boot_errors'] as const;

test('the remote API has the verdict of a guest’s boot, its stage and its errors, and nothing of none', () => {
  const valuesOf = (boot: InstanceInfo['boot']): readonly unknown[] => {
    const instance = sampleInstance({ boot });
    return NAMES.map((name) => instanceFields[name]?.of(instance));
  };
  const boot = { stage: 'init-local' as const, errors: ['e'], recoverableErrors: [], stages: [] };
  assert.deepEqual(valuesOf({ ...boot, status: 'error' }), ['error', 'init-local', ['e']]);
  assert.deepEqual(valuesOf(null), [null, null, null]);
});
