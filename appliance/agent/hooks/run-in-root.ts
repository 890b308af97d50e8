import { readlinkSync } from 'node:fs';
import { TargetRoot } from '../disks/target-root.ts';
import type { ProgramEnd } from '#shared/process/run-in-group.ts';
import type { StageReporter } from '../report/stage.ts';
import { type Confinement, type ProgramRoot, runConfined } from '../scripts/confine.ts';

export interface StepRoot {
  readonly path: string;
  /**
   * Root directory of its programs; null for the instance's system, which has no /dev, /proc and
   * /sys of its own.
   */
  readonly program: ProgramRoot | null;
  readonly confinement: Confinement;
  readonly environment: Readonly<Record<string, string>>;
}

export async function runInRoot(
  root: StepRoot,
  program: readonly string[],
  log: StageReporter['log'],
  isFull?: StageReporter['isFull'],
): Promise<ProgramEnd> {
  const at = root.program ?? findPlaces(root.path);
  return runConfined(root.confinement, at, program, root.environment, log, { isFull });
}

/** Resolves the mount points inside the root, so that links cannot lead these mounts elsewhere. */
function findPlaces(path: string): ProgramRoot {
  const [dev = '', proc = '', sys = ''] = ['dev', 'proc', 'sys'].map((name) =>
    realPath(path, name),
  );
  return { path, dev, proc, sys };
}

function realPath(rootPath: string, name: string): string {
  const held = new TargetRoot(rootPath).openDirectory([name], { create: true });
  try {
    return readlinkSync(held.path);
  } finally {
    held.close();
  }
}
