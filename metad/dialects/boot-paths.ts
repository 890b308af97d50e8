import { SERVICE_URL } from '#shared/contract/service-address.ts';
import type { ServedView } from '../view/served-view.ts';

/** Below a version of the ganeti dialect. */
export const BOOT_FOLDER = 'boot';

/** Returns the folder of files from an archive or a repository, below {@link BOOT_FOLDER}. */
export function bootTreePath(uuid: string): string {
  return `machines/${uuid}/boot`;
}

/** Depth of `boot/machines/UUID/boot`. */
export const BOOT_TREE_DEPTH = 4;

export interface BootUrls {
  readonly script: string;
  readonly loader: string | null;
}

/** Returns the boot URLs that DHCP offers to firmware; null without a boot environment. */
export function bootUrls({ boot, uuid }: ServedView): BootUrls | null {
  if (!boot) return null;
  const root = `${SERVICE_URL}/ganeti/latest/${BOOT_FOLDER}`;
  return {
    script: `${root}/${boot.script}`,
    loader: boot.loader === null ? null : `${root}/${bootTreePath(uuid)}/${boot.loader}`,
  };
}
