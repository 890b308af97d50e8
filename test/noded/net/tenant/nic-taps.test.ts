import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { InstanceNic } from '#shared/contract/instance.ts';
import { bridgeOf, natNamesOf } from '../../../../noded/net/tenant/nat-names.ts';
import { bridgesOnly } from '../../support/bridges-only.ts';

const UUID = '11111111-1111-4111-8111-111111111111';

test('a bridged NIC whose link is the bridge of a NAT network is refused', async () => {
  for (const root of ['/', '/srv/other']) {
    const link = bridgeOf(natNamesOf(root), { uuid: UUID });
    const nic: InstanceNic = {
      ...{ uuid: UUID, mac: 'aa:00:00:00:00:01', mode: 'bridged', link, name: null },
      ...{ ip: null, network: null },
    };
    await assert.rejects(bridgesOnly.check(nic), { code: 'CONFLICT' });
    await assert.rejects(bridgesOnly.open(nic, 'web'), { code: 'CONFLICT' });
  }
});
