import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type InstanceRecord, MAX_PORTS } from '#shared/contract/instance.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { settingsOfStart } from '../../../noded/instances/view/settings-of-run.ts';
import {
  givePorts,
  plugParts,
  settlePorts,
  unplugDisk,
} from '../../../noded/operations/plug-parts.ts';
import { instanceRecord } from '../support/records.ts';

const nic = (number: number, port?: number): InstanceRecord['nics'][number] =>
  ({
    ...{ uuid: `aaaaaaaa-0000-4000-8000-00000000000${number}`, name: null },
    ...{ mac: `aa:00:00:00:00:0${number}`, mode: 'bridged', link: 'br0' },
    ...(port !== undefined && { port }),
  }) as InstanceRecord['nics'][number];
const disk = (number: number, port?: number): InstanceRecord['disks'][number] => ({
  ...{ uuid: `bbbbbbbb-0000-4000-8000-00000000000${number}`, name: null, sizeBytes: 2 ** 30 },
  ...(port !== undefined && { port }),
});

/** Returns a running instance that started with some parts and has others now. */
function running(
  ofRun: Pick<InstanceRecord, 'nics' | 'disks'>,
  now: Pick<InstanceRecord, 'nics' | 'disks'>,
): InstanceRecord {
  const started = { ...instanceRecord(), ...ofRun };
  return { ...started, ...now, partsOfRun: settingsOfStart(started) };
}

const portsOf = ({ nics, disks }: Pick<InstanceRecord, 'nics' | 'disks'>) =>
  [...nics, ...disks].map(({ port }) => port);

test('new parts get the lowest ports that no part has or had in this run', () => {
  const before = running(
    { nics: [nic(1), nic(2, 0)], disks: [disk(1, 2)] },
    { nics: [nic(1)], disks: [disk(1, 2)] },
  );
  const planned = givePorts(before, { nics: [nic(1), nic(3)], disks: [disk(1, 2), disk(2)] });
  assert.deepEqual(portsOf(planned), [undefined, 1, 2, 3]);
});

test('a part gets no port when all are taken', () => {
  const taken = Array.from({ length: MAX_PORTS }, (_, port) => disk(port, port));
  const full = running({ nics: [], disks: taken }, { nics: [], disks: taken });
  assert.deepEqual(portsOf(givePorts(full, { nics: [nic(9)], disks: [] })), [undefined]);
});

interface Told {
  readonly lines: string[];
  readonly calls: string[];
}

function lab(
  instance: InstanceRecord,
  {
    plugged = [],
    releases = true,
    fails = false,
  }: { plugged?: readonly string[]; releases?: boolean; fails?: boolean } = {},
) {
  const told: Told = { lines: [], calls: [] };
  const machine = { plugged: async () => new Set(plugged) };
  const dependencies = {
    instances: {
      update: async (_uuid: string, change: (current: InstanceRecord) => InstanceRecord) => {
        told.calls.push('update');
        return change(instance);
      },
    },
    runner: {
      running: () => ({ machine }),
      plug: async (_instance: InstanceRecord, uuid: string) => {
        if (fails) throw new AppError('QMP', 'QEMU refused');
        told.calls.push(`plug ${uuid}`);
      },
      unplug: async (_uuid: string, uuid: string) => {
        told.calls.push(`unplug ${uuid}`);
        return releases;
      },
    },
  } as unknown as Parameters<typeof unplugDisk>[2];
  const context = {
    report: {
      log: (line: string, level?: string) =>
        void told.lines.push([level, line].filter(Boolean).join(': ')),
    },
  } as unknown as Parameters<typeof plugParts>[2];
  return { told, machine: machine as never, dependencies, context };
}

test('added parts with a port are attached, and removed NICs with a port are detached', async () => {
  const changed = running(
    { nics: [nic(1), nic(2, 0)], disks: [disk(1)] },
    { nics: [nic(3, 1)], disks: [disk(1), disk(2, 2), disk(3)] },
  );
  const { told, dependencies, context } = lab(changed, { plugged: [nic(3).uuid, disk(2).uuid] });
  const settled = await plugParts(changed, dependencies, context);
  assert.deepEqual(told.calls, [
    `plug ${disk(2).uuid}`,
    `plug ${nic(3).uuid}`,
    `unplug ${nic(2).uuid}`,
    'update',
  ]);
  assert.deepEqual(told.lines, [
    'disk 1 is attached to the running instance',
    'NIC 0 is attached to the running instance',
    'the NIC aa:00:00:00:00:02 is detached from the instance',
  ]);
  const uuidsOf = (parts: readonly { readonly uuid: string }[] = []) =>
    parts.map(({ uuid }) => uuid);
  assert.deepEqual(uuidsOf(settled.partsOfRun?.nics), [nic(3).uuid, nic(1).uuid]);
  assert.deepEqual(uuidsOf(settled.partsOfRun?.disks), [disk(1).uuid, disk(2).uuid]);
});

test('a part that QEMU refuses waits for the next start, and a NIC may stay', async () => {
  const changed = running({ nics: [nic(2, 0)], disks: [] }, { nics: [], disks: [disk(2, 1)] });
  const { told, dependencies, context } = lab(changed, {
    ...{ plugged: [nic(2).uuid], releases: false, fails: true },
  });
  await plugParts(changed, dependencies, context);
  assert.deepEqual(told.lines, [
    'warn: disk 0 was not attached to the running instance: QEMU refused',
    'warn: the guest does not release the NIC aa:00:00:00:00:02: the NIC keeps its address until the guest releases it or restarts',
  ]);
});

test('nothing is attached to an instance that is not running', async () => {
  const stopped = instanceRecord({});
  const { told, dependencies, context } = lab(stopped);
  assert.equal(await plugParts(stopped, dependencies, context), stopped);
  assert.deepEqual(told.calls, []);
});

test('ports are settled by what QEMU has, only if they differ', async () => {
  const parts = { nics: [nic(1)], disks: [disk(1, 0)] };
  const same = { ...instanceRecord(), ...parts, partsOfRun: null };
  const { told, machine, dependencies } = lab(same, { plugged: [disk(1).uuid] });
  assert.equal(await settlePorts(same, machine, dependencies.instances), same);
  assert.equal(await settlePorts(same, undefined, dependencies.instances), same);
  assert.deepEqual(told.calls, []);
  const other = lab(same);
  const settled = await settlePorts(same, other.machine, other.dependencies.instances);
  assert.deepEqual(other.told.calls, ['update']);
  assert.deepEqual(settled.partsOfRun?.disks, []);
});

test('a disk that the guest does not release stays attached', async () => {
  const parts = { nics: [], disks: [disk(1, 0)] };
  const instance = running(parts, parts);
  const { uuid } = disk(1);
  const held = lab(instance, { plugged: [uuid], releases: false });
  await assert.rejects(unplugDisk(instance, uuid, held.dependencies), { code: 'INSTANCE_STATE' });
  const released = lab(instance);
  const settled = await unplugDisk(instance, uuid, released.dependencies);
  assert.deepEqual(released.told.calls, [`unplug ${uuid}`, 'update']);
  assert.deepEqual(settled.partsOfRun?.disks, []);
});
