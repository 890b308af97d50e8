import { createFileDriver } from './drivers/file/file-driver.ts';
import { InstanceDisks } from './instance-disks.ts';
import type { FolderParts } from './instance-folders.ts';
import { createVolumeDriver, type VolumeParts } from './drivers/volumes/volume-driver.ts';

/** @param parts tests without `plain` or `zfs` get files in place of such disks */
export function createInstanceDisks(
  disksDir: string,
  parts: FolderParts & { readonly plain?: VolumeParts; readonly zfs?: VolumeParts } = {},
): InstanceDisks {
  const { plain, zfs } = parts;
  return new InstanceDisks(disksDir, parts, (folders) => {
    const files = createFileDriver(folders);
    return {
      file: files,
      sharedfile: files,
      diskless: files,
      plain: plain === undefined ? files : createVolumeDriver(folders, plain),
      zfs: zfs === undefined ? files : createVolumeDriver(folders, zfs),
    };
  });
}
