import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '#shared/clock/clock.ts';
import type { DoctorFinding } from '#shared/contract/api.ts';
import { checkIdentity } from '../../../../noded/operations/doctor/examine-identity.ts';
import type { NodeParts } from '../../../../noded/operations/doctor/check.ts';
import { IDENTITY } from '../../../../noded/records/identity-keys.ts';
import { openIdentityLab } from '../../../lab/identity-lab.ts';

test('doctor finds lost and unreadable keys, while identities are on', async () => {
  await using lab = await openIdentityLab(systemClock, []);
  const examine = async (): Promise<readonly DoctorFinding[]> => {
    // Other parts are not examined.
    const parts = { records: { clusters: lab.clusters } } as unknown as NodeParts;
    return [await checkIdentity(parts)].flat();
  };
  assert.deepEqual(await examine(), [], 'off');
  await lab.configure({ policy: 'yes' });
  const [fine] = await examine();
  assert.equal(fine?.level, 'ok');
  const record = { collection: IDENTITY, id: 'keys', expected: 'any' } as const;
  await lab.store.commit([{ ...record, value: { schema: 1, generations: [] } }]);
  const [unreadable] = await examine();
  assert.equal(unreadable?.level, 'error');
  assert.match(unreadable?.hint ?? '', /gnt-cluster renew-crypto --new-identity-keys/);
  await lab.store.commit([{ ...record, value: undefined }]);
  const [missing] = await examine();
  assert.match(missing?.message ?? '', /are missing/);
  assert.match(missing?.hint ?? '', /gnt-cluster renew-crypto --new-identity-keys/);
});
