import { createReadStream, createWriteStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import type { DumpFile } from '../../instances/backup/export-store.ts';
import { type OsParameters, revealParameters } from '../../instances/parameters/os-parameters.ts';
import type { OsSelection } from './os-registry.ts';
import { runHostScript, type HostScriptOptions } from './run-host-script.ts';
import { planOspVariables, type ScriptOperation } from './script-environment.ts';
import { planInstanceEnvironment } from './instance-environment.ts';

export interface InstanceScript extends Pick<
  HostScriptOptions,
  'path' | 'extraPath' | 'onLine' | 'signal' | 'launch'
> {
  readonly instance: InstanceRecord;
  readonly os: OsSelection;
  readonly parameters: OsParameters;
  readonly diskPath: (index: number) => string;
}

/**
 * Runs a trusted script for an instance, with Ganeti's environment.
 * @throws AppError SCRIPT_FAILED
 */
export async function runInstanceScript(
  script: InstanceScript,
  operation: ScriptOperation,
  streams: Pick<HostScriptOptions, 'stdin' | 'stdout'> = {},
): Promise<void> {
  const { instance, os, parameters, diskPath, ...options } = script;
  await runHostScript({
    ...options,
    ...streams,
    cwd: os.definition.path,
    environment: {
      ...planInstanceEnvironment({
        instance,
        os,
        operation,
        runsIn: 'host',
        diskPath,
      }),
      ...planOspVariables(revealParameters(parameters)),
    },
  });
}

/**
 * Runs `import` for each dump, with the dump on its standard input.
 * @throws AppError SCRIPT_FAILED
 */
export async function importDumps(
  script: InstanceScript,
  dumps: readonly DumpFile[],
): Promise<void> {
  for (const { disk, path } of dumps) {
    const stdin = createReadStream(path);
    await runInstanceScript(script, { script: 'import', diskIndex: disk }, { stdin });
  }
}

/**
 * Runs `export` for each disk. Its standard output is the dump.
 * @returns the size of each dump in bytes
 * @throws AppError SCRIPT_FAILED
 */
export async function exportDumps(
  script: InstanceScript,
  dumps: readonly DumpFile[],
): Promise<readonly number[]> {
  const sizes: number[] = [];
  for (const { disk, path } of dumps) {
    const stdout = createWriteStream(path, { mode: 0o600 });
    await runInstanceScript(script, { script: 'export', diskIndex: disk }, { stdout });
    sizes.push((await stat(path)).size);
  }
  return sizes;
}
