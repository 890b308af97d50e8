import { randomUUID } from 'node:crypto';
import type { InstallationFacts } from '#shared/contract/hook-book.ts';
import type { HookDocument } from '#shared/contract/hooks.ts';
import type { HookStage } from '#shared/contract/primitives.ts';
import { AppError, isAppError } from '#shared/errors/app-error.ts';
import { ownValue } from '#shared/json/own-value.ts';
import type { StageReporter } from '../report/stage.ts';
import type { Confinement, ProgramRoot } from '../scripts/confine.ts';
import { findSkipReason } from './conditions.ts';
import type { OrderedStep } from './order.ts';
import { readBook } from './read-book.ts';
import { RootFiles } from './root-files.ts';
import { readOsRelease } from './os-release.ts';
import { runInRoot, type StepRoot } from './run-in-root.ts';
import { runStep, type StepWorld } from './run-step.ts';
import { mapTexts } from './step-texts.ts';
import { randomWord, renderTemplate, type TemplateValues } from './templates.ts';
import { comesBeforeImage, isChroot } from './stage-names.ts';

/** The appliance's system for hooks: writable, and separate from the agent's. */
export interface HookAppliance {
  /** Its root directory as the agent reaches it. It holds untrusted links. */
  readonly rootPath: string;
  /** Its root directory as programs see it. */
  readonly program: ProgramRoot;
  readonly confinement: Confinement;
}

/** The surroundings of hooks: two root directories, and the environment of programs. */
export interface HookWorld {
  readonly openAppliance: () => Promise<HookAppliance>;
  /** Mount point of the instance's root, the same for the agent and in the appliance's system. */
  readonly instancePath: string;
  /** Called when needed: it fetches private and secret values. */
  readonly environment: () => Promise<Readonly<Record<string, string>>>;
  readonly architecture: string;
}

/** The entry of a separate bundle, which the agent loads only for hooks. */
export interface HooksModule {
  readonly openHooks: typeof openHooks;
}

const architectures: Readonly<Record<string, string>> = { x64: 'amd64', ia32: '386' };

/**
 * Parses and orders documents.
 * @throws AppError HOOK_FAILED for an invalid document, before any step runs
 */
export function openHooks(
  documents: readonly HookDocument[],
  facts: InstallationFacts,
  world: HookWorld,
) {
  const { stages, files, remarks } = readBook(documents, facts);
  const count = [...stages.values()].reduce((sum, steps) => sum + steps.length, 0);
  const sentinels = createSentinels(facts);
  return {
    summary: `${count} step(s) from ${files.join(', ')}`,
    /** Stages and keys that installations ignore; a line each. */
    remarks,
    has: (stage: HookStage): boolean => stages.has(stage),
    /**
     * Runs the steps of one stage. @returns a sentence for the log
     * @throws AppError HOOK_FAILED that names the step, except for an optional one
     */
    run: async (stage: HookStage, reporter: StageReporter): Promise<string> => {
      const appliance = await world.openAppliance();
      await sentinels.raise(appliance.rootPath);
      const root = await prepareRoot(stage, world, appliance);
      const replacedDisk = comesBeforeImage(stage) ? facts.imageDisk : null;
      const summary = await runSteps(stages.get(stage) ?? [], world, {
        root,
        files: new RootFiles(root.path),
        reporter,
        replacedDisk,
      });
      if (comesBeforeImage(stage)) sentinels.requireNoFailure(appliance.rootPath);
      return summary;
    },
  };
}

export type HookBook = ReturnType<typeof openHooks>;

async function runSteps(
  steps: readonly OrderedStep[],
  world: HookWorld,
  stepWorld: StepWorld,
): Promise<string> {
  const { root, files, reporter } = stepWorld;
  const architecture = ownValue(architectures, world.architecture) ?? world.architecture;
  const counts = { done: 0, skipped: 0, failed: 0 };
  for (const { label, file, fields: given } of steps) {
    const step = `${label} of ${file}`;
    try {
      const fields = mapTexts(given, (text, isHostname) =>
        renderTemplate(text, () => templateValuesOf(stepWorld, architecture), isHostname),
      );
      const reason = await findSkipReason(fields, {
        files,
        architecture,
        instance: root.environment['INSTANCE_NAME'] ?? '',
        run: (program) => runInRoot(root, program, () => undefined),
      });
      reporter.log(reason === null ? step : `${step}: skipped, ${reason}`);
      if (reason === null) await runStep(fields, stepWorld);
      counts[reason === null ? 'done' : 'skipped'] += 1;
    } catch (error) {
      if (!isAppError(error)) throw error;
      const message = `${step}: ${error.message}`;
      if (!given.optional) throw named(message, error);
      counts.failed += 1;
      reporter.log(`${message} (optional)`);
    }
  }
  return Object.entries(counts)
    .filter(([what, count]) => count > 0 || what === 'done')
    .map(([what, count]) => `${count} ${what}`)
    .join(', ');
}

function templateValuesOf({ files, root }: StepWorld, architecture: string): TemplateValues {
  const os = readOsRelease(files) ?? {};
  return {
    'Values.os.name': os.PRETTY_NAME ?? '',
    'Values.os.vendor': os.ID ?? '',
    'Values.os.version': os.VERSION_ID ?? '',
    'Values.os.architecture': architecture,
    'Values.node.hostname': root.environment['INSTANCE_NAME'] ?? '',
    'Values.Random': randomWord(),
    UUID: randomUUID(),
    Random: randomWord(),
  };
}

async function prepareRoot(
  stage: HookStage,
  world: HookWorld,
  { rootPath, program, confinement }: HookAppliance,
): Promise<StepRoot> {
  const environment = await world.environment();
  if (isChroot(stage))
    return {
      path: world.instancePath,
      program: null,
      confinement,
      // Tells systemctl not to look for a running system.
      environment: { ...environment, SYSTEMD_OFFLINE: '1' },
    };
  return {
    path: rootPath,
    program,
    confinement,
    environment: { ...environment, GNT_TARGET: world.instancePath },
  };
}

function named(message: string, error: AppError): AppError {
  return new AppError('HOOK_FAILED', message, {
    cause: error,
    hint: error.hint,
  });
}

/** Folder where Kairos tells steps how it was booted. */
const SENTINELS_FOLDER = '/run/cos';
/** A step that creates this file ends a Kairos installation before the disk is written. */
const FAILURE_SENTINEL = `${SENTINELS_FOLDER}/fail_installation`;
const OWNED_BY_ROOT = { uid: 0, gid: 0 };

/**
 * The files by which Kairos' steps detect their surroundings. The appliance is a live system, and
 * its reinstallation corresponds to a reset by Kairos' recovery system.
 */
function createSentinels({ points }: Pick<InstallationFacts, 'points'>) {
  const names = ['live_mode', ...(points.includes('before-reset') ? ['recovery_mode'] : [])];
  let areRaised = false;
  return {
    /** Creates the files in the appliance's system once: a step may remove them. */
    async raise(rootPath: string): Promise<void> {
      if (areRaised) return;
      const files = new RootFiles(rootPath);
      files.makeDirectory(SENTINELS_FOLDER, { ...OWNED_BY_ROOT, mode: 0o755 });
      for (const name of names)
        await files.write(`${SENTINELS_FOLDER}/${name}`, '', { ...OWNED_BY_ROOT, mode: 0o644 });
      areRaised = true;
    },
    /** @throws AppError HOOK_FAILED when a step requested the end */
    requireNoFailure(rootPath: string): void {
      if (new RootFiles(rootPath).exists(FAILURE_SENTINEL))
        throw new AppError(
          'HOOK_FAILED',
          `a step created ${FAILURE_SENTINEL}, so the installation stopped`,
        );
    },
  };
}
