import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { InstallationFacts } from '#shared/contract/hook-book.ts';
import type { HookDocument } from '#shared/contract/hooks.ts';
import type { InstallPlan } from '#shared/contract/plan.ts';
import type { HookPoint, HookStage } from '#shared/contract/primitives.ts';
import { systemCodeOf } from '#shared/errors/app-error.ts';
import type { HostClient, OsParameters } from '../channel/host-client.ts';
import type { HookBook, HooksModule } from '../hooks/main.ts';
import { TARGET_PATH } from '../disks/mount.ts';
import { createScriptEnvironment, planMirrorVariables } from '../scripts/environment.ts';
import type { ScriptWorld } from '../scripts/script-world.ts';
import type { Stage } from '../report/stage.ts';

/** The appliance's own hooks, which its builder adds. */
export const OWN_HOOKS = '/opt/gnt/hooks';

export interface HooksStageOptions {
  readonly plan: InstallPlan;
  readonly host: HostClient;
  /** Proves to gnt-metad that the agent asks. */
  readonly signPath: (path: string) => string;
  readonly parameters: () => Promise<OsParameters>;
  readonly world: ScriptWorld;
  /** Loads the hooks module. Most installations have no hooks and boot without it. */
  readonly load: () => HooksModule;
  readonly ownFolder: string;
  readonly onOpened: (book: HookBook) => void;
}

/** Returns the stage that fetches and parses all hooks before any other; empty without hooks. */
export function createHooksStage(options: HooksStageOptions): Stage[] {
  const { plan, host, onOpened } = options;
  const { hooks } = plan;
  const own = hooks ? readOwnHooks(options.ownFolder) : [];
  if (!hooks || (own.length === 0 && !hooks.hasDocuments)) return [];
  const stage: Stage = {
    name: 'hooks',
    async run(reporter) {
      const fetched = hooks.hasDocuments ? await host.fetchHooks(options.signPath) : [];
      const book = options.load().openHooks([...own, ...fetched], planFacts(plan), {
        instancePath: TARGET_PATH,
        openAppliance: async () => {
          const confinement = await options.world.open();
          const { rootPath } = confinement;
          return { confinement, rootPath, program: { path: '/', proc: '/proc' } };
        },
        environment: async () => planEnvironment(plan, await options.parameters()),
        architecture: process.arch,
      });
      for (const remark of book.remarks) reporter.log(remark);
      onOpened(book);
      return book.summary;
    },
  };
  return [stage];
}

function planFacts({ hooks, image, disks, mirrors = [] }: InstallPlan): InstallationFacts {
  const [first] = disks;
  return {
    points: hooks?.points ?? [],
    imageDisk: image && first ? diskPath(first.serial) : null,
    mirrors,
  };
}

/** Returns the path in the environment of scripts. */
function diskPath(serial: string): string {
  return `/dev/disk/by-id/virtio-${serial}`;
}

/**
 * Returns the environment of hooks: that of scripts, or, without scripts, Ganeti's names for the
 * plan.
 */
function planEnvironment(plan: InstallPlan, parameters: OsParameters): Record<string, string> {
  const disks = plan.disks.map(
    ({ serial }, index) => [`DISK_${index}_PATH`, diskPath(serial)] as const,
  );
  const planned = {
    INSTANCE_NAME: plan.instance,
    DISK_COUNT: String(plan.disks.length),
    ...Object.fromEntries(disks),
    ...(plan.hooks?.points.includes('before-reset') === true && { INSTANCE_REINSTALL: '1' }),
    ...plan.scripts?.environment,
    ...planMirrorVariables(plan),
  };
  return createScriptEnvironment(planned, parameters);
}

function readOwnHooks(folder: string): HookDocument[] {
  let names: string[];
  try {
    names = readdirSync(folder);
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return [];
    throw error;
  }
  return names
    .filter((name) => /\.ya?ml$/.test(name))
    .sort()
    .map((name) => ({
      source: 'appliance',
      name,
      content: readFileSync(join(folder, name)).toString('base64'),
    }));
}

export function hasHooks(hooks: HookBook | null, point: HookPoint): boolean {
  return (['.before', '', '.after'] as const).some((suffix) => hooks?.has(`${point}${suffix}`));
}

/**
 * Puts a point's hooks around its built-in stages. Hooks of the point itself run at the end of the
 * built-in stage of that name, or are a stage of their own without one.
 */
export function surroundWithHooks(
  hooks: HookBook | null,
  point: HookPoint,
  builtIn: readonly Stage[],
): Stage[] {
  if (hooks === null) return [...builtIn];
  const only = (stage: HookStage): Stage[] =>
    hooks.has(stage) ? [{ name: stage, run: (reporter) => hooks.run(stage, reporter) }] : [];
  const isBuiltIn = builtIn.some(({ name }) => name === point);
  return [
    ...only(`${point}.before`),
    ...builtIn.map((stage) => (stage.name === point ? addHooks(stage, point, hooks) : stage)),
    ...(isBuiltIn ? [] : only(point)),
    ...only(`${point}.after`),
  ];
}

function addHooks(stage: Stage, point: HookPoint, hooks: HookBook): Stage {
  if (!hooks.has(point)) return stage;
  return {
    ...stage,
    async run(reporter) {
      const summary = await stage.run(reporter);
      return `${summary}; hooks: ${await hooks.run(point, reporter)}`;
    },
  };
}
