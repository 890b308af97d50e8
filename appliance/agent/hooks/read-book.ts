import type { HookBook, InstallationFacts } from '#shared/contract/hook-book.ts';
import type { HookDocument } from '#shared/contract/hooks.ts';
import { type HookStage, hookStages } from '#shared/contract/primitives.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { parseHookDocument } from './document.ts';
import type { StepFields } from './fields.ts';
import { type OrderedStep, orderSteps } from './order.ts';
import { needsMirror } from './packages.ts';
import { comesBeforeImage } from './stage-names.ts';
import { listTexts } from './step-texts.ts';
import { staysWithBraces } from './templates.ts';

export interface ReadBook {
  /** Documents in execution order: `cluster/10-users.yaml`. */
  readonly files: readonly string[];
  readonly stages: ReadonlyMap<HookStage, readonly OrderedStep[]>;
  /** Stages and keys that installations ignore; a line each. */
  readonly remarks: readonly string[];
}

/**
 * Parses documents in execution order. Refuses all faults that are detectable without running a
 * step.
 * @throws AppError HOOK_FAILED
 */
export function readBook(documents: readonly HookDocument[], facts: InstallationFacts): ReadBook {
  const parsed = documents.map(parseHookDocument);
  const stages = new Map<HookStage, readonly OrderedStep[]>();
  for (const stage of new Set(parsed.flatMap((document) => [...document.stages.keys()]))) {
    const steps = orderSteps(
      parsed.map(({ file, name, stages: own }) => ({ file, name, steps: own.get(stage) ?? [] })),
    );
    for (const step of steps) {
      requireLasting(step, stage, facts);
      requireMirror(step, facts);
    }
    const isOurs = facts.points.some((point) => stage === point || stage.startsWith(`${point}.`));
    if (isOurs && steps.length > 0) stages.set(stage, steps);
  }
  return {
    files: parsed.map(({ file }) => file),
    stages,
    remarks: [
      ...parsed
        .filter(({ ignored }) => ignored.length > 0)
        .map(
          ({ file, ignored }) => `${file}: ignored, not for installations: ${ignored.join(', ')}`,
        ),
      ...[...stages.values()].flat().flatMap(listKeptBraces),
    ],
  };
}

function listKeptBraces({ label, file, fields }: OrderedStep): string[] {
  const kept = listTexts(fields).filter(
    ({ name, text }) => name !== 'hostname' && staysWithBraces(text),
  );
  return kept.map(
    ({ name }) => `${file}: ${label}, ${name}: {{ does not name .Values and is kept as text`,
  );
}

function requireMirror({ label, file, fields }: OrderedStep, { mirrors }: InstallationFacts): void {
  if (mirrors === null || mirrors.length > 0) return;
  if (!fields.packages || !needsMirror(fields.packages)) return;
  throw new AppError('HOOK_FAILED', `${label} of ${file}: "packages" needs a package mirror`, {
    hint: 'Allow one: gnt-cluster modify --package-mirror debian=URL',
  });
}

function requireLasting(
  { label, file, fields }: OrderedStep,
  stage: HookStage,
  { imageDisk }: InstallationFacts,
): void {
  if (imageDisk === null || !comesBeforeImage(stage)) return;
  if (fields.layout?.device.path !== imageDisk) return;
  throw layoutIsReplaced(`${label} of ${file}: `);
}

/** @param where the step that has the layout */
export function layoutIsReplaced(where = ''): AppError {
  return new AppError(
    'HOOK_FAILED',
    `${where}"layout" changes the disk that the image is written to afterwards`,
    { hint: 'Move it to image.after.' },
  );
}

/** Returns the viewable part of hooks: the order and the origin of the steps. */
export function describeBook({ stages, remarks }: ReadBook): HookBook {
  return {
    stages: hookStages.flatMap((stage) => {
      const steps = stages.get(stage);
      if (!steps) return [];
      return [
        {
          stage,
          steps: steps.map(({ label, file, fields }) => ({
            label,
            file,
            fields: listFields(fields),
          })),
        },
      ];
    }),
    remarks: [...remarks],
  };
}

/** Lists the fields of a step that differ from their defaults, in execution order. */
function listFields(fields: StepFields): string[] {
  const isGiven = (value: unknown): boolean =>
    typeof value === 'object' && value !== null
      ? Object.keys(value).length > 0
      : value !== undefined && value !== false;
  return Object.entries(fields)
    .filter(([name, value]) => isGiven(value) && !['name', 'environment_file'].includes(name))
    .map(([name]) => name);
}
