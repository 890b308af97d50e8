import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DEFAULT_LIMITS } from '#shared/contract/view.ts';
import type { InstanceView, ViewLimits } from '#shared/contract/view.ts';
import { planInstall } from '../../../noded/provision/install/plan-install.ts';
import { resolveParameters } from '../../../noded/instances/parameters/os-parameters.ts';
import { planView } from '../../../noded/instances/view/plan-view.ts';
import { clusterRecord, instanceRecord } from '../support/records.ts';

type Given = NonNullable<Parameters<typeof instanceRecord>[0]>;

function viewWith(given: Given, isInstalling = false): InstanceView {
  const instance = instanceRecord({ communication: true, ...given });
  const content = { imageSizeBytes: null, hasPackage: false, script: null };
  return planView({
    instance,
    cluster: clusterRecord,
    device: 'gnt.com.3',
    revision: 1,
    parameters: resolveParameters([]),
    install: isInstalling
      ? {
          ...content,
          plan: planInstall({ instance, installId: instance.uuid, ...content }),
          scripts: new Map(),
          definitionTar: null,
        }
      : null,
  });
}

function limitsWith(hvparams: NonNullable<Given['hvparams']>): ViewLimits {
  return viewWith({ hvparams }).limits;
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

test('installation parameters are in force while it is installed, over its own', () => {
  const given = {
    hvparams: { metadata_request_rate: 5, metadata_connections: 7 },
    installParameters: { metadata_connections: 70, metadata_hop_limit: 3 },
  };
  const installing = viewWith(given, true);
  assert.deepEqual([installing.limits.requestsPerSecond, installing.limits.connections], [5, 70]);
  assert.equal(installing.channel.hopLimit, 3);
  const running = viewWith(given);
  assert.deepEqual([running.limits.connections, running.channel.hopLimit], [7, 1]);
});
