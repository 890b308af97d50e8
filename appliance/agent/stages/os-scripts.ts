import { mkdirSync } from 'node:fs';
import type { InstallPlan } from '#shared/contract/plan.ts';
import { CORE_VARIABLES, planDumpVariables } from '#shared/contract/script-environment.ts';
import type { HostClient, OsParameters } from '../channel/host-client.ts';
import { rereadPartitions } from '../disks/file-systems.ts';
import { unpackTar } from '../overlay/package.ts';
import { readDump, writeDump } from '../scripts/dump-streams.ts';
import { createScriptEnvironment, planMirrorVariables } from '../scripts/environment.ts';
import { runScript, type ScriptOptions } from '../scripts/run-script.ts';
import type { ScriptWorld } from '../scripts/script-world.ts';
import { type DiskLocations, listDisksBySerial } from '../disks/disks.ts';
import type { Stage, StageReporter } from '../report/stage.ts';

/** In RAM, and shown to scripts at the same path. */
const DEFINITION_PATH = '/run/gnt/os';

/** Variables of `verify` besides OSP_*, since there is no instance for it. */
const VERIFY_VARIABLES = new Set<string>(['PATH', ...CORE_VARIABLES]);

type Scripts = NonNullable<InstallPlan['scripts']>;

export interface OsScriptsOptions {
  readonly plan: InstallPlan;
  readonly scripts: Scripts;
  readonly host: HostClient;
  readonly at: DiskLocations;
  readonly world: ScriptWorld;
  /** Returns the script's values. Called when the stage runs. */
  readonly parameters: () => Promise<OsParameters>;
  readonly onDumped: (dumpBytes: readonly number[]) => void;
}

export interface OsScriptStages {
  readonly verify: readonly Stage[];
  readonly run: Stage;
}

export function createOsScriptStages(options: OsScriptsOptions): OsScriptStages {
  const { scripts, plan, at } = options;
  let fetched: Promise<void> | undefined;
  const prepare = async (reporter: StageReporter): Promise<Omit<ScriptOptions, 'path'>> => {
    const parameters = await options.parameters();
    const confinement = await options.world.open();
    await (fetched ??= fetchDefinition(options.host).then(() => confinement.show(DEFINITION_PATH)));
    return {
      confinement,
      directory: DEFINITION_PATH,
      environment: createScriptEnvironment(
        { ...scripts.environment, ...planMirrorVariables(plan) },
        parameters,
      ),
      reporter,
    };
  };
  const { verify } = scripts;
  return {
    verify: verify === undefined ? [] : [createVerifyStage(verify, prepare)],
    run: {
      name: 'os-scripts',
      async run(reporter) {
        const prepared = await prepare(reporter);
        await rereadPartitions(plan, at);
        const script = { ...prepared, path: scripts.path };
        if (scripts.script === 'import') await runForDumps(script, 'import', scripts.dumps, at);
        else if (scripts.script === 'export')
          options.onDumped(await runForDumps(script, 'export', scripts.dumps, at));
        else await runScript(script);
        return `${scripts.path} succeeded`;
      },
    },
  };
}

async function fetchDefinition(host: HostClient): Promise<void> {
  mkdirSync(DEFINITION_PATH, { recursive: true });
  await unpackTar(await host.fetchDefinition(), DEFINITION_PATH);
}

function createVerifyStage(
  path: string,
  prepare: (reporter: StageReporter) => Promise<Omit<ScriptOptions, 'path'>>,
): Stage {
  return {
    name: 'verify',
    async run(reporter) {
      const prepared = await prepare(reporter);
      const environment = Object.fromEntries(
        Object.entries(prepared.environment).filter(
          ([name]) => name.startsWith('OSP_') || VERIFY_VARIABLES.has(name),
        ),
      );
      await runScript({ ...prepared, path, environment, args: ['parameters'] });
      return `${path} accepts the parameters`;
    },
  };
}

/** Runs the script once for each dump. @returns the bytes of each exported dump */
async function runForDumps(
  script: ScriptOptions,
  name: 'import' | 'export',
  dumps: Scripts['dumps'] = [],
  at: DiskLocations,
): Promise<readonly number[]> {
  const disks = listDisksBySerial(at);
  const sizes: number[] = [];
  for (const dump of dumps) {
    const told = script.environment[`DISK_${dump.disk}_PATH`] ?? '';
    const environment = { ...script.environment, ...planDumpVariables(name, dump.disk, told) };
    // An import's empty dump has no disk.
    const path = disks.get(dump.serial)?.path ?? '/dev/null';
    if (name === 'import') {
      const { sizeBytes } = dump;
      await runScript({
        ...script,
        environment,
        stdin: readDump(path, sizeBytes, script.reporter),
      });
    } else {
      const target = writeDump(path, dump.sizeBytes, script.reporter);
      await runScript({ ...script, environment, stdout: target.stream });
      sizes.push(await target.finish());
    }
  }
  return sizes;
}
