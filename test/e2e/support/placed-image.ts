import { run } from '#shared/process/run.ts';
import type { Lab } from '../../../scripts/demo/lab.ts';
import { firstDiskOf } from './installed.ts';

/** Options of `add` for an instance without installation and start. */
export const WITHOUT_INSTALL = ['--no-install', '--no-start'] as const;

/**
 * Writes an image to the first disk of such an instance, as its installation would, for tests of
 * the image's content.
 */
export async function placeImage(lab: Lab, name: string, image: string): Promise<void> {
  const disk = await firstDiskOf(lab, name);
  await run('qemu-img', ['convert', '-n', '-O', 'raw', image, disk], { timeoutMs: 300_000 });
}
