import type { ClusterRecord } from '#shared/contract/api.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { planNewInstance } from '../../../noded/instances/record/plan-record.ts';
import { createOpcode } from './opcodes.ts';

/** Distinct and always the same: 00000000-0000-4000-8000-000000000001, …2, … */
export function countingUuids(): () => string {
  let count = 0;
  return () => {
    count += 1;
    return `00000000-0000-4000-8000-${String(count).padStart(12, '0')}`;
  };
}

/** A planned instance with the channel that the store would have given it. */
export function instanceRecord(
  input: Parameters<typeof createOpcode>[0] = {},
  overrides: Partial<InstanceRecord> = {},
): InstanceRecord {
  const { channelNicUuid, ...planned } = planNewInstance(createOpcode(input), {
    nodeName: 'node1.example.com',
    newUuid: countingUuids(),
    newMac: () => 'aa:00:00:00:00:01',
  });
  return {
    ...planned,
    channel: { ip: '169.254.1.7', mac: '52:54:00:12:34:56', uuid: channelNicUuid },
    createdAtMs: 1000,
    modifiedAtMs: 1000,
    serialNo: 1,
    ...overrides,
  };
}

export const clusterRecord: ClusterRecord = {
  schema: 1,
  name: 'cluster.example.com',
  uuid: '99999999-0000-4000-8000-000000000000',
  createdAtMs: 0,
  installTimeoutS: 0,
  hostScripts: true,
  exposeServices: {},
};
