import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { ApplianceManifest } from '#shared/contract/appliance-manifest.ts';
import {
  type HookFile,
  hookFiles,
  MAX_HOOK_DOCUMENTS,
  MAX_HOOKS_BYTES,
} from '#shared/contract/hooks.ts';
import { fileName } from '#shared/contract/primitives.ts';
import { AppError, isAppError, messageOf, systemCodeOf } from '#shared/errors/app-error.ts';
import { writeDurably } from '#shared/files/durable.ts';
import { MIB } from '#shared/units/bytes.ts';
import { parseHookDocument } from '../agent/hooks/document.ts';
import { encodeCpio } from './cpio.ts';
import { HOOKS_ARCHIVE_FOLDER } from './init-scripts.ts';

const MAX_DOCUMENT_BYTES = MIB;

/**
 * Reads the documents of a folder that are to be part of an appliance. What its agent would refuse, is refused here already.
 * @throws AppError VALIDATION that names the document, never its content; FILE_UNREADABLE
 */
export async function readHookFolder(folder: string): Promise<HookFile[]> {
  const listed = await readdir(folder).catch((error: unknown) => {
    throw unreadable(folder, systemCodeOf(error) ?? messageOf(error));
  });
  const names = listed.filter((name) => /\.ya?ml$/.test(name)).sort();
  if (names.length === 0)
    throw new AppError('VALIDATION', `${folder} holds no hook documents`, {
      hint: 'their names end in .yaml or .yml; --hooks default takes hooks away',
    });
  if (names.length > MAX_HOOK_DOCUMENTS)
    throw tooMany(folder, `${names.length} hook documents`, MAX_HOOK_DOCUMENTS);
  const hooks: HookFile[] = [];
  for (const name of names) hooks.push(await readHook(folder, name));
  const bytes = hooks.reduce((sum, { content }) => sum + Buffer.byteLength(content, 'base64'), 0);
  if (bytes > MAX_HOOKS_BYTES) throw tooMany(folder, `hooks of ${bytes} bytes`, MAX_HOOKS_BYTES);
  return hooks;
}

async function readHook(folder: string, name: string): Promise<HookFile> {
  const path = join(folder, name);
  if (!fileName.safeParse(name).success)
    throw new AppError('VALIDATION', `hooks ${path}: not a name for a document`, {
      hint: 'letters, digits, and _ + . - after the first one: 10-users.yaml',
    });
  const found = await stat(path).catch((error: unknown) => {
    throw unreadable(path, systemCodeOf(error) ?? messageOf(error));
  });
  if (!found.isFile() || found.size > MAX_DOCUMENT_BYTES)
    throw unreadable(path, 'not a regular file of at most 1 MiB');
  const hook: HookFile = { name, content: (await readFile(path)).toString('base64') };
  try {
    parseHookDocument({ source: 'appliance', ...hook });
  } catch (error) {
    if (!isAppError(error, 'HOOK_FAILED')) throw error;
    throw new AppError('VALIDATION', error.message, {
      ...(error.hint !== undefined && { hint: error.hint }),
      cause: error,
    });
  }
  return hook;
}

/** The hooks of the last build that was given some: every later build has them too, one by the node daemon among them. */
export async function readKeptHooks(path: string): Promise<HookFile[]> {
  try {
    return hookFiles.parse(JSON.parse(await readFile(path, 'utf8')));
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return [];
    throw new AppError('APPLIANCE_BUILD', `the appliance's hooks in ${path} cannot be read`, {
      hint: 'give them again: gnt-appliance build --hooks FOLDER, or --hooks default for none',
      cause: error,
    });
  }
}

export async function keepHooks(path: string, hooks: readonly HookFile[]): Promise<void> {
  if (hooks.length === 0) return rm(path, { force: true });
  await mkdir(dirname(path), { recursive: true });
  await writeDurably(path, JSON.stringify(hooks), { mode: 0o600 });
}

/**
 * The same appliance with hooks: an archive of their own behind the initramfs, whose init puts them where the agent looks. So they
 * cost no build, and the cache holds one appliance for all.
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

function tooMany(folder: string, what: string, limit: number): AppError {
  return new AppError('VALIDATION', `${folder} holds ${what}, ${limit} are possible`);
}

function unreadable(path: string, reason: string): AppError {
  return new AppError('FILE_UNREADABLE', `hooks ${path}: ${reason}`, {
    hint: '--hooks takes a folder of hook documents, or "default" for none',
  });
}
