import { existsSync } from 'node:fs';
import { mkdir, rm, statfs } from 'node:fs/promises';
import { run } from '#shared/process/run.ts';

/** Directory of ip-netns(8). */
const NAMESPACE_DIR = '/run/netns';
/** linux/magic.h: file system of namespace files. */
const NSFS_MAGIC = 0x6e736673;
const NAME_PATTERN = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/;

export function namespacePathOf(name: string): string {
  if (!NAME_PATTERN.test(name)) throw new Error(`not a network namespace name: ${name}`);
  return `${NAMESPACE_DIR}/${name}`;
}

/**
 * Creates the namespace unless it exists. Replaces a file that a crash left in its place.
 * @returns whether the namespace was created
 */
export async function ensureNetworkNamespace(name: string): Promise<boolean> {
  if (await networkNamespaceExists(name)) return false;
  await mkdir(NAMESPACE_DIR, { recursive: true });
  await rm(namespacePathOf(name), { force: true });
  await run('ip', ['netns', 'add', name]);
  return true;
}

export async function networkNamespaceExists(name: string): Promise<boolean> {
  const path = namespacePathOf(name);
  return existsSync(path) && (await statfs(path)).type === NSFS_MAGIC;
}

export async function deleteNetworkNamespace(name: string): Promise<void> {
  if (await networkNamespaceExists(name)) await run('ip', ['netns', 'del', name]);
}
