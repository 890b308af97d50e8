/** Serials that identify the appliance's virtio disks; this one is the image's. */
export const IMAGE_SERIAL = 'image';

/** @param disk index of the instance's disk that is exported or imported */
export function dumpSerial(disk: number): string {
  return `dump${disk}`;
}

/** @param index of the instance's own disk */
export function diskSerial(index: number): string {
  return `disk${index}`;
}

/** Returns the disk's path in the appliance, by the name that scripts and hooks know. */
export function diskPathInAppliance(index: number): string {
  return `/dev/disk/by-id/virtio-${diskSerial(index)}`;
}
