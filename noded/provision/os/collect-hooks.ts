import { join } from 'node:path';
import {
  type HookDocument,
  type HookFile,
  type HookSource,
  MAX_HOOKS_BYTES,
} from '#shared/contract/hooks.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { readHookFolder } from '#shared/files/read-hook-folder.ts';

export interface HookPlaces {
  readonly clusterDir: string;
  /** Folder of the OS definition. */
  readonly osPath: string | null;
  readonly instance: readonly HookFile[];
}

/**
 * Returns all hooks of an installation in the order of their execution: cluster, OS definition,
 * instance, and by name within each. Only the appliance parses their content.
 * @throws AppError VALIDATION when they are too many or too large, FILE_UNREADABLE
 */
export async function collectHooks(places: HookPlaces): Promise<HookDocument[]> {
  const { clusterDir, osPath, instance } = places;
  const documents = [
    ...(await readFolder('cluster', clusterDir, true)),
    // A link in a definition could lead to any file of the host.
    ...(osPath === null ? [] : await readFolder('os', join(osPath, 'hooks'), false)),
    ...instance.map((file) => ({ source: 'instance' as const, ...file })),
  ];
  const bytes = documents.reduce((sum, { content }) => sum + (content.length / 4) * 3, 0);
  if (bytes <= MAX_HOOKS_BYTES) return documents;
  throw new AppError(
    'VALIDATION',
    `the hooks of this installation have ${Math.ceil(bytes)} bytes, the limit is ${MAX_HOOKS_BYTES}`,
  );
}

async function readFolder(
  source: HookSource,
  folder: string,
  followLinks: boolean,
): Promise<HookDocument[]> {
  const files = await readHookFolder(folder, { followLinks, mayBeMissing: true });
  return files.map((file) => ({ source, ...file }));
}
