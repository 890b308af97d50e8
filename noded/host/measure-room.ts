import { availableParallelism, freemem, totalmem } from 'node:os';
import type { HostRoom } from '#shared/contract/host-room.ts';
import { MIB } from '#shared/units/bytes.ts';

/** Storage operations that the measurement needs. */
interface DiskSpace {
  totalBytes(): Promise<number>;
  freeBytes(): Promise<number>;
  volumeRoom(): Promise<Pick<HostRoom, 'volumes' | 'zvols'>>;
}

/** Measures the total and free capacity of this host. */
export async function measureRoom(disks: DiskSpace): Promise<HostRoom> {
  const volumes = await disks.volumeRoom();
  return {
    cpus: availableParallelism(),
    memoryMiB: Math.floor(totalmem() / MIB),
    memoryFreeMiB: Math.floor(freemem() / MIB),
    diskBytes: await disks.totalBytes(),
    diskFreeBytes: await disks.freeBytes(),
    ...volumes,
  };
}
