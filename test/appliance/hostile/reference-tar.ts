import { startTar } from '../../../appliance/agent/overlay/run-tar.ts';

/**
 * GNU tar with the directory as its root, given the archive as it is.
 * @returns what it complained of, or null
 */
export async function unpackWithTarAlone(archive: Buffer, root: string): Promise<string | null> {
  const tar = startTar(root);
  tar.input.end(archive);
  return await tar.ended;
}
