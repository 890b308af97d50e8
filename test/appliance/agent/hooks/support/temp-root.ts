import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { InstallationFacts } from '#shared/contract/hook-book.ts';
import type { HookDocument } from '#shared/contract/hooks.ts';
import { hookPoint } from '#shared/contract/primitives.ts';
import {
  type HookBook,
  type HookWorld,
  openHooks,
} from '../../../../../appliance/agent/hooks/main.ts';
import { NO_WORLD } from '../../../../../appliance/agent/scripts/confine.ts';
import type { StageReporter } from '../../../../../appliance/agent/report/stage.ts';

const BUSYBOX = '/usr/bin/busybox';
const PROGRAMS = ['sh', 'sed', 'cat', 'grep', 'sleep', 'env', 'mount', 'ls', 'setsid'];

/** A small system in a temporary directory, as the instance's and the appliance's root. */
export class TempRoot implements Disposable {
  readonly #directory = mkdtempSync(join(tmpdir(), 'gnt-hooks-test-'));
  readonly path = join(this.#directory, 'root');
  /** Beside the root, where hooks must not reach. */
  readonly outside = join(this.#directory, 'outside');
  readonly lines: string[] = [];
  readonly reporter: StageReporter = {
    log: (line) => this.lines.push(line),
    progress: () => undefined,
  };

  constructor(files: Readonly<Record<string, string>> = {}) {
    for (const path of ['bin', 'etc', 'srv']) mkdirSync(join(this.path, path), { recursive: true });
    mkdirSync(this.outside);
    copyFileSync(BUSYBOX, join(this.path, 'bin/busybox'));
    for (const name of PROGRAMS) symlinkSync('busybox', join(this.path, 'bin', name));
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(this.path, path)), { recursive: true });
      writeFileSync(join(this.path, path), text, {
        mode: path.startsWith('/bin/') ? 0o755 : 0o644,
      });
    }
  }

  [Symbol.dispose](): void {
    rmSync(this.#directory, { recursive: true });
  }

  open(
    documents: readonly HookDocument[],
    world: Partial<HookWorld> = {},
    facts: Partial<InstallationFacts> = {},
  ): HookBook {
    const usual = { points: hookPoint.options, imageDisk: null, mirrors: null };
    return openHooks(
      documents,
      { ...usual, ...facts },
      {
        instancePath: this.path,
        openAppliance: async () => ({
          rootPath: this.path,
          program: { path: this.path },
          confinement: NO_WORLD,
        }),
        environment: async () => ({ PATH: '/bin' }),
        architecture: 'x64',
        ...world,
      },
    );
  }
}

export function hookDocument(
  content: string,
  fields: Partial<Omit<HookDocument, 'content'>> = {},
): HookDocument {
  return {
    source: 'instance',
    name: 'test.yaml',
    ...fields,
    content: Buffer.from(content).toString('base64'),
  };
}
