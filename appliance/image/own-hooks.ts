import { createHash } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { ApplianceManifest } from '#shared/contract/appliance-manifest.ts';
import { type HookFile, MAX_HOOKS_BYTES } from '#shared/contract/hooks.ts';
import { fileName, hookPoint } from '#shared/contract/primitives.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { writeDurably } from '#shared/files/durable.ts';
import { readHookFolder } from '#shared/files/read-hook-folder.ts';
import { judgeHooks } from '#shared/sandbox/judge-hooks.ts';
import { DEFAULT_FIRST_POWERLESS_UID } from '#shared/sandbox/plan-sandbox.ts';
import { encodeCpio } from './cpio.ts';
import { HOOKS_ARCHIVE_FOLDER } from './initramfs.ts';

/**
 * Reads a folder of hook documents for an appliance. Refuses documents that its agent would refuse.
 * @throws AppError VALIDATION that names the document, never its content; FILE_UNREADABLE
 */
export async function readOwnHooks(folder: string, signal?: AbortSignal): Promise<HookFile[]> {
  const hooks = await readHookFolder(folder, { followLinks: true, mayBeMissing: false });
  if (hooks.length === 0)
    throw new AppError('VALIDATION', `${folder} holds no hook documents`, {
      hint: 'Name hook documents *.yaml or *.yml. gnt-appliance build --hooks none removes hooks.',
    });
  for (const hook of hooks) requireName(folder, hook);
  const bytes = hooks.reduce((sum, { content }) => sum + Buffer.byteLength(content, 'base64'), 0);
  if (bytes > MAX_HOOKS_BYTES)
    throw new AppError(
      'VALIDATION',
      `${folder} holds hooks of ${bytes} bytes, the limit is ${MAX_HOOKS_BYTES}`,
    );
  // Assumes any installation, since the appliance serves all of them.
  const facts = { points: hookPoint.options, imageDisk: null, mirrors: null };
  const documents = hooks.map((hook) => ({ source: 'appliance' as const, ...hook }));
  await judgeHooks({ documents, facts }, { firstUid: DEFAULT_FIRST_POWERLESS_UID, signal });
  return hooks;
}

function requireName(folder: string, hook: HookFile): void {
  if (fileName.safeParse(hook.name).success) return;
  throw new AppError('VALIDATION', `hooks ${join(folder, hook.name)}: not a document name`, {
    hint: 'Use letters, digits and _ + . -, not beginning with a sign: 10-users.yaml',
  });
}

export async function keepHooks(path: string, hooks: readonly HookFile[]): Promise<void> {
  if (hooks.length === 0) return rm(path, { force: true });
  await mkdir(dirname(path), { recursive: true });
  await writeDurably(path, JSON.stringify(hooks), { mode: 0o600 });
}

/**
 * Adds hooks to an appliance, in an archive behind the initramfs that init mounts for the agent. So
 * hooks need no build, and the cache holds one appliance for all.
 */
export function addHooks(
  manifest: ApplianceManifest,
  initrd: Buffer,
  hooks: readonly HookFile[],
): { readonly manifest: ApplianceManifest; readonly initrd: Buffer } {
  const files = hooks.map(({ name, content }) => ({
    path: `${HOOKS_ARCHIVE_FOLDER}/${name}`,
    mode: 0o600,
    data: Buffer.from(content, 'base64'),
  }));
  const longer = Buffer.concat([initrd, encodeCpio([HOOKS_ARCHIVE_FOLDER], files)]);
  return {
    initrd: longer,
    manifest: {
      ...manifest,
      initrd: {
        name: manifest.initrd.name,
        sizeBytes: longer.length,
        sha256: sha256Of(longer),
      },
      hooks: hooks.map(({ name, content }) => ({
        name,
        sha256: sha256Of(Buffer.from(content, 'base64')),
      })),
    },
  };
}

function sha256Of(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}
