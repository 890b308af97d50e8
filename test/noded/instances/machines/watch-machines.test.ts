import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { HostRoom } from '#shared/contract/host-room.ts';
import { watchMachines } from '../../../../noded/instances/machines/watch-machines.ts';

const ROOM: HostRoom = {
  ...{ cpus: 4, memoryMiB: 4096, memoryFreeMiB: 4096 },
  ...{ diskBytes: 1 << 30, diskFreeBytes: 1 << 30 },
};

test('what runs is told with what room there is, and whatever the file system of the disks does', async (t) => {
  const ended = new AbortController();
  t.after(() => ended.abort());
  // The watch's pauses do not keep the process running, this timer does.
  const alive = setInterval(() => undefined, 1000);
  t.after(() => clearInterval(alive));
  const first = async (measure: () => Promise<HostRoom>): Promise<unknown> =>
    (await watchMachines({ list: () => [] }, measure, ended.signal).next()).value;
  const told = { isFirst: true, running: [], ended: [] };
  assert.deepEqual(await first(() => Promise.resolve(ROOM)), { ...told, room: ROOM });
  assert.deepEqual(await first(() => Promise.reject(new Error('EIO'))), told);
  assert.deepEqual(await first(() => new Promise<never>(() => undefined)), told);
});
