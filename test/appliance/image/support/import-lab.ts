import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { machine, tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ApplianceManifest } from '#shared/contract/appliance-manifest.ts';
import { importAppliance } from '../../../../appliance/image/import.ts';

/** Files of a handmade appliance whose root has these bytes. */
export function filesOf(rootBytes: string, changes: object = {}): Record<string, string> {
  const contents = { bzImage: 'kernel', 'init.cpio.gz': 'initrd', 'root.img': rootBytes };
  const file = (name: keyof typeof contents) => ({
    name,
    sizeBytes: contents[name].length,
    sha256: createHash('sha256').update(contents[name]).digest('hex'),
  });
  const manifest = {
    ...{ version: 1, inputsHash: '0'.repeat(64), architecture: machine(), kernelVersion: '6.12.1' },
    ...{
      sourceDate: '2026-01-01T00:00:00Z',
      kernelArguments: 'quiet',
      memoryMiB: 128,
      packages: [],
    },
    ...{ kernel: file('bzImage'), initrd: file('init.cpio.gz'), root: file('root.img') },
    ...changes,
  };
  return { ...contents, 'manifest.json': JSON.stringify(manifest) };
}

/** A folder for new appliances, and one for imported appliances. */
export interface ImportLab extends AsyncDisposable {
  readonly top: string;
  readonly imported: string;
  /** @returns the folder of a new appliance */
  readonly makeFolder: (name: string, rootBytes: string, changes?: object) => Promise<string>;
  readonly bring: (
    source: string,
    name: string,
    signal?: AbortSignal,
    onWait?: () => void,
  ) => Promise<ApplianceManifest>;
  readonly rootOf: (name: string) => Promise<string>;
  /** Lists the left-overs of ended imports. */
  readonly leftovers: () => Promise<string[]>;
}

export const never: AbortSignal = new AbortController().signal;

export async function createImportLab(): Promise<ImportLab> {
  const top = await mkdtemp(join(tmpdir(), 'gnt-import-'));
  const imported = join(top, 'appliances');
  await mkdir(imported);
  return {
    top,
    imported,
    makeFolder: async (name, rootBytes, changes = {}) => {
      const folder = join(top, name);
      await mkdir(folder);
      for (const [file, bytes] of Object.entries(filesOf(rootBytes, changes)))
        await writeFile(join(folder, file), bytes);
      return folder;
    },
    bring: (source, name, signal = never, onWait = () => undefined) =>
      importAppliance(source, name, imported, { signal, onWait }),
    rootOf: (name) => readFile(join(imported, name, 'root.img'), 'utf8'),
    leftovers: async () =>
      (await readdir(imported)).filter((name) => name.startsWith('.') && name !== '.lock'),
    [Symbol.asyncDispose]: () => rm(top, { recursive: true }),
  };
}
