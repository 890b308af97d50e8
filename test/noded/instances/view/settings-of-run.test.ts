import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { asItRuns, describeWaiting, waitingSettings } from '#shared/contract/settings-of-run.ts';
import { describeInstance } from '../../../../noded/instances/describe-instance.ts';
import { applyChanges } from '../../../../noded/operations/change-instance.ts';
import { applyParts, tellParts } from '../../../../noded/operations/change-running-parts.ts';
import type { JobContext } from '../../../../noded/jobs/job-handler.ts';
import { modifyOpcode } from '../../support/opcodes.ts';
import { instanceRecord } from '../../support/records.ts';

const dialects: InstanceRecord['dialects'] = ['ganeti', 'ec2', 'openstack', 'nocloud'];
const web1 = instanceRecord({
  ...{ name: 'web1', communication: true, seedDisk: true, dialects },
  nics: [{ mode: 'user', name: 'front' }],
});

/** Returns the record of a running instance after a change, as `modify` stores it. */
function change(
  instance: InstanceRecord,
  input: Parameters<typeof modifyOpcode>[0],
  isRunning = true,
): InstanceRecord {
  const { nics, disks } = instance;
  const changed = applyChanges(instance, modifyOpcode(input));
  return applyParts(changed, { nics, disks }, isRunning ? instance : null);
}

test('every setting of the QEMU process waits for the next start of a running instance', () => {
  const changes: readonly (readonly [Parameters<typeof modifyOpcode>[0], readonly string[]])[] = [
    [{ communication: false }, ['channel']],
    [{ seedDisk: false }, ['seed disk']],
    [{ beparams: { memoryMiB: 4096 } }, ['memory']],
    [{ beparams: { vcpus: 7 } }, ['vcpus']],
    [{ hvparams: { firmware: 'uefi' } }, ['firmware']],
    [{ hvparams: { boot_report: 'no' } }, ['boot_report']],
    [{ bootEnv: 'rescue' }, ['boot environment']],
  ];
  for (const [input, names] of changes) {
    const changed = change(web1, input);
    assert.deepEqual(waitingSettings(changed), names);
    assert.deepEqual({ ...asItRuns(changed), partsOfRun: null }, web1);
    assert.equal(change(web1, input, false).partsOfRun, null);
  }
});

test('settings that a running instance takes over at once do not wait', () => {
  const all = change(web1, {
    hvparams: { metadata_request_rate: 7, metadata_hop_limit: 2, decommission_timeout: 9 },
    // The seed disk stays the datasource.
    dialects: ['ec2', 'nocloud'],
    metadata: { role: 'db' },
    tags: ['a'],
  });
  assert.equal(all.partsOfRun, null);
  const nics = web1.nics.map((nic) => ({ ...nic, name: 'uplink' }));
  assert.equal(applyParts(web1, { nics, disks: web1.disks }, web1).partsOfRun, null);
});

test('several changes wait together, and a change back ends the wait', () => {
  const off = change(web1, { communication: false });
  const both = change(off, {
    beparams: { memoryMiB: 4096 },
    hvparams: { metadata_connections: 9 },
  });
  assert.deepEqual(waitingSettings(both), ['memory', 'channel']);
  assert.equal(asItRuns(both).hvparams.metadata_connections, 9);
  const back = change(both, { communication: true, beparams: { memoryMiB: null } });
  assert.equal(back.partsOfRun, null);
});

test('dialects wait where SMBIOS shows the guest another data source', () => {
  const ec2 = { ...web1, seedDisk: false, instanceId: web1.instanceId.replace(/^.../, 'ec2') };
  const changed = change(ec2, { dialects: ['openstack', 'ganeti'] });
  assert.deepEqual(waitingSettings(changed), ['dialects']);
  const parameters = {
    parameters: new Map(),
    appliance: { name: 'a', source: 'default' },
  } as const;
  const machine = {
    ...{ pid: 1, accelerator: 'tcg' as const, startedAtMs: 0, tap: null, readyAtMs: null },
    ...{ halt: null, bootEnv: null, lostSecrets: [] },
  };
  const info = describeInstance(changed, { machine, report: null }, parameters);
  assert.equal(info.cloudInit.datasource, 'OpenStack');
  assert.equal(asItRuns(info).cloudInit.datasource, 'Ec2');
  assert.equal(describeInstance(changed, null, parameters).partsOfRun, null);
});

test('a job names the changes that wait, and only its own', () => {
  const lines: string[] = [];
  const context = { report: { log: (line: string) => lines.push(line) } } as unknown as JobContext;
  const off = change(web1, { communication: false });
  tellParts(web1, off, modifyOpcode(), context);
  const more = change(off, { beparams: { memoryMiB: 4096 } });
  tellParts(off, more, modifyOpcode(), context);
  tellParts(more, { ...more, tags: ['a'] }, modifyOpcode(), context);
  const reboot = 'gnt-instance reboot web1 (a reboot inside the guest is not enough)';
  assert.deepEqual(lines, [
    `changes of channel take effect at the next start: ${reboot}`,
    `changes of memory take effect at the next start: ${reboot}`,
  ]);
  assert.equal(
    describeWaiting(['NICs', 'memory']),
    'changes of NICs and memory take effect at the next start',
  );
});
