import { run } from '#shared/process/run.ts';
import type { Lab } from '../../../scripts/demo/lab.ts';
import { firstDiskOf } from './installed.ts';

/** Of `add`: an instance that no appliance installs, and that does not run yet. */
export const WITHOUT_INSTALL = ['--no-install', '--no-start'] as const;

/**
 * Puts an image where an installation of it would have, in the first disk of an instance that was
 * added so: for tests of what is in the image.
 */
export async function placeImage(lab: Lab, name: string, image: string): Promise<void> {
  const disk = await firstDiskOf(lab, name);
  await run('qemu-img', ['convert', '-n', '-O', 'raw', image, disk], { timeoutMs: 300_000 });
}
