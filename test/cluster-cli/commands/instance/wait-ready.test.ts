import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { InstanceInfo } from '#shared/contract/instance.ts';
import { whySilent } from '../../../../cluster-cli/commands/instance/wait-ready.ts';
import { sampleInstance } from '../../support/samples.ts';

const noCloud = { datasource: 'NoCloud', reason: 'it finds the seed disk' };
const ec2 = { datasource: 'Ec2', reason: 'DMI' };
const machine = { pid: 1, accelerator: 'tcg', startedAtMs: 0, tap: null, readyAtMs: null } as const;

test('a running guest is silent by the data source of its run, not by that of its next start', () => {
  const running = machine as unknown as NonNullable<InstanceInfo['running']>;
  const info = (now: typeof ec2, next: typeof ec2): InstanceInfo =>
    sampleInstance({
      ...{ running, communication: true, lifecycle: null, cloudInit: next },
      partsOfRun: { nics: [], disks: [], cloudInit: now },
    });
  assert.match(whySilent(info(ec2, noCloud), null)?.reason ?? '', /EC2 datasource/);
  assert.equal(whySilent(info(noCloud, ec2), null), null);
});
