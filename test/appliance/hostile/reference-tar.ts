import { startTar } from '../../../appliance/agent/overlay/run-tar.ts';

/**
 * Runs GNU tar on the unchanged archive, with the directory as its root.
 * @returns its first message, or null
 */
export async function unpackWithTarAlone(archive: Buffer, root: string): Promise<string | null> {
  const tar = startTar(root);
  tar.input.end(archive);
  return await tar.ended;
}
