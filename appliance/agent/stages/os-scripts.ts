import { mkdirSync } from 'node:fs';
import type { InstallPlan } from '#shared/contract/plan.ts';
import type { HostClient, OsParameters } from '../channel/host-client.ts';
import { rereadPartitions } from '../overlay/file-systems.ts';
import { unpackTar } from '../overlay/package.ts';
import { createScriptEnvironment, planMirrorVariables } from '../scripts/environment.ts';
import { runScript } from '../scripts/run-script.ts';
import { prepareWritableRoot, WRITABLE_ROOT } from '../scripts/writable-root.ts';
import type { DiskLocations } from './disks.ts';
import type { Stage } from './stage.ts';

/** In RAM, and the same path inside the script's root. */
const DEFINITION_PATH = '/run/gnt/os';

export interface OsScriptsOptions {
  readonly plan: InstallPlan;
  readonly scripts: NonNullable<InstallPlan['scripts']>;
  readonly host: HostClient;
  readonly at: DiskLocations;
  /** The values that the script gets; asked for when the stage runs. */
  readonly parameters: () => Promise<OsParameters>;
}

/** Fetches the OS definition and runs its untrusted script. */
export function createOsScriptsStage(options: OsScriptsOptions): Stage {
  const { plan, scripts, host, at } = options;
  return {
    name: 'os-scripts',
    async run(reporter) {
      const parameters = await options.parameters();
      mkdirSync(DEFINITION_PATH, { recursive: true });
      await unpackTar(await host.fetchDefinition(), DEFINITION_PATH);
      await rereadPartitions(plan, at);
      await prepareWritableRoot();
      await runScript({
        rootPath: WRITABLE_ROOT,
        directory: DEFINITION_PATH,
        path: scripts.path,
        environment: createScriptEnvironment(
          { ...scripts.environment, ...planMirrorVariables(plan) },
          parameters,
        ),
        reporter,
      });
      return `${scripts.path} succeeded`;
    },
  };
}
