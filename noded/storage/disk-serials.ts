/** Serials by which the appliance tells its virtio disks apart; this one is the image's. */
export const IMAGE_SERIAL = 'image';

/** @param disk index of the instance's disk whose export or import goes through it */
export function dumpSerial(disk: number): string {
  return `dump${disk}`;
}

/** @param index of the instance's own disk */
export function diskSerial(index: number): string {
  return `disk${index}`;
}

/** Where the appliance has it, by the name that scripts and hooks know. */
export function diskPathInAppliance(index: number): string {
  return `/dev/disk/by-id/virtio-${diskSerial(index)}`;
}
