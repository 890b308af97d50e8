import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DEFAULT_LIMITS } from '#shared/contract/view.ts';
import type { ViewLimits } from '#shared/contract/view.ts';
import { resolveParameters } from '../../../noded/instances/os-parameters.ts';
import { planView } from '../../../noded/instances/plan-view.ts';
import { clusterRecord, instanceRecord } from '../support/records.ts';

function limitsWith(
  hvparams: NonNullable<Parameters<typeof instanceRecord>[0]>['hvparams'],
): ViewLimits {
  return planView({
    instance: instanceRecord({ communication: true, ...(hvparams && { hvparams }) }),
    cluster: clusterRecord,
    device: 'gnt.com.3',
    revision: 1,
    parameters: resolveParameters([]),
    install: null,
  }).limits;
}

test('an instance has the limits that its hypervisor parameters say, and the usual ones otherwise', () => {
  assert.deepEqual(limitsWith({}), DEFAULT_LIMITS);
  const own = {
    metadata_request_rate: 5,
    metadata_request_burst: 6,
    metadata_connections: 7,
    metadata_connection_rate: 8,
  };
  assert.deepEqual(limitsWith(own), { requestsPerSecond: 5, burst: 6, connections: 7 });
  assert.deepEqual(limitsWith({ metadata_connections: 7 }), { ...DEFAULT_LIMITS, connections: 7 });
});
