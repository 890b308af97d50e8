import type { HookDocument } from '#shared/contract/hooks.ts';
import type { HookStage } from '#shared/contract/primitives.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { z } from 'zod';
import { ownValue, setOwn } from '#shared/json/own-value.ts';
import { instanceFields, refusedFields, type StepFields, stepFields } from './fields.ts';
import { parsePlainYaml } from './plain-yaml.ts';
import { findStage, isChroot } from './stage-names.ts';
import { listTexts } from './step-texts.ts';
import { findTemplateFault } from './templates.ts';

export interface ParsedDocument {
  /** `cluster/10-users.yaml` */
  readonly file: string;
  /** The name in `after`: the document's `name`, or its file's. */
  readonly name: string;
  readonly stages: ReadonlyMap<HookStage, readonly StepFields[]>;
  /** Keys without meaning for an installation: a document may also serve the guest's own boot. */
  readonly ignored: readonly string[];
}

const MAX_STEPS = 1000;
const MAX_TOLD = 3;
const MAX_TOLD_LENGTH = 64;

const STAGES_HINT = 'The stages are listed in docs/reference/hooks.md.';

const empty = new Set<unknown>(['']);
/** Maps of texts, where an empty text is a value. */
const verbatimFields = ['environment', 'sysctl', 'timesyncd', 'systemd_firstboot'];

/**
 * Parses a document of hooks. Errors name places, never content: hooks may hold passwords.
 * @throws AppError HOOK_FAILED
 */
export function parseHookDocument(document: HookDocument): ParsedDocument {
  const file = `${document.source}/${document.name}`;
  const root = parsePlainYaml(Buffer.from(document.content, 'base64').toString(), (reason, hint) =>
    invalid(file, reason, hint),
  );
  const { name, stages, ...rest } = isMap(root) ? root : {};
  const mistyped = Object.keys(rest).find((key) => /^stages?$/i.test(key));
  if (mistyped !== undefined)
    throw invalid(file, `unknown key ${mistyped}`, 'Did you mean stages?');
  if (!isMap(root) && !empty.has(root)) throw invalid(file, 'not a map with "stages"');
  const known = new Map<HookStage, StepFields[]>();
  const ignored = Object.keys(rest);
  if (stages !== undefined && !isMap(stages) && !empty.has(stages))
    throw invalid(file, '"stages" is not a map');
  for (const [index, [word, steps]] of Object.entries(isMap(stages) ? stages : {}).entries()) {
    const meaning = findStage(word);
    if (meaning.kind === 'unknown') throw unknownStage(file, word, index, meaning.nearest);
    if (meaning.kind === 'foreign') ignored.push(`stage ${word}`);
    // A document may use both names of a stage.
    else
      known.set(meaning.stage, [
        ...(known.get(meaning.stage) ?? []),
        ...parseSteps(steps, meaning.stage, file),
      ]);
  }
  return {
    file,
    name: typeof name === 'string' && name !== '' ? name : document.name,
    stages: known,
    ignored,
  };
}

/**
 * Shows a word that is not near any stage only if it looks like a stage's name: values of a
 * malformed document may be secret.
 */
function unknownStage(file: string, word: string, index: number, nearest: string | null): AppError {
  const isName = STAGE_LIKE.test(word);
  const shown = isName ? `unknown stage ${word}` : `unknown stage: number ${index + 1} of "stages"`;
  return nearest === null
    ? invalid(file, shown, STAGES_HINT)
    : invalid(file, `unknown stage ${word.slice(0, MAX_TOLD_LENGTH)}`, `Did you mean ${nearest}?`);
}

const STAGE_LIKE = /^[a-z]{1,20}([.-][a-z]{1,20}){0,3}$/;

function parseSteps(steps: unknown, stage: HookStage, file: string): StepFields[] {
  if (empty.has(steps)) return [];
  if (!Array.isArray(steps)) throw invalid(file, `stage ${stage} is not a list of steps`);
  if (steps.length > MAX_STEPS)
    throw invalid(file, `stage ${stage} has more than ${MAX_STEPS} steps`, 'Split the stage.');
  return steps.map((step: unknown, index) => {
    const where = `stage ${stage}, step ${index + 1}`;
    if (empty.has(step)) return stepFields.parse({}, { jitless: true });
    if (!isMap(step)) throw invalid(file, `${where}: not a map`);
    for (const [field, reason] of Object.entries(refusedFields))
      if (Object.hasOwn(step, field) && !empty.has(ownValue(step, field)))
        throw invalid(file, `${where}: "${field}" is not possible in an installation: ${reason}`);
    const parsed = stepFields.safeParse(dropEmpty(step), { jitless: true });
    if (!parsed.success) throw invalid(file, `${where}: ${describeIssues(parsed.error.issues)}`);
    const misplaced = instanceFields.find((field) => field in step);
    if (misplaced !== undefined && !isChroot(stage))
      throw invalid(
        file,
        `${where}: "${misplaced}" changes the instance, but this stage runs in the appliance`,
        'Move it to after-install-chroot.',
      );
    if ('layout' in step && isChroot(stage))
      throw invalid(
        file,
        `${where}: "layout" changes disks, but they are mounted in this stage`,
        'Move it to image.after, which runs before the disks are mounted.',
      );
    const fault = findTextFault(parsed.data);
    if (fault !== null) throw invalid(file, `${where}: ${fault}`);
    return parsed.data;
  });
}

/** Returns the fault of a template that an installation cannot render, or null. */
function findTextFault(fields: StepFields): string | null {
  for (const { name, text } of listTexts(fields)) {
    const fault = findTemplateFault(text, name === 'hostname');
    if (fault !== null) return `${name}: ${fault}`;
  }
  return null;
}

function dropEmpty(map: Record<string, unknown>): Record<string, unknown> {
  const kept: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(map)) {
    if (empty.has(value)) continue;
    if (verbatimFields.includes(key)) setOwn(kept, key, value);
    else if (key === 'users' && isMap(value))
      setOwn(
        kept,
        key,
        Object.fromEntries(
          Object.entries(value).map(([name, user]) => [
            name,
            isMap(user) ? dropEmpty(user) : user || {},
          ]),
        ),
      );
    else if (Array.isArray(value))
      setOwn(
        kept,
        key,
        value.map((item: unknown) => (isMap(item) ? dropEmpty(item) : item)),
      );
    else setOwn(kept, key, isMap(value) ? dropEmpty(value) : value);
  }
  return kept;
}

/** Describes issues by the names of fields, never by values. */
function describeIssues(issues: readonly z.core.$ZodIssue[]): string {
  return issues
    .slice(0, MAX_TOLD)
    .map((issue) => {
      const at = issue.path.map((part) =>
        typeof part === 'number' ? part + 1 : String(part).slice(0, MAX_TOLD_LENGTH),
      );
      const unknown =
        issue.code === 'unrecognized_keys' ? issue.keys.filter(isPlainKey).slice(0, MAX_TOLD) : [];
      const what =
        issue.code === 'unrecognized_keys'
          ? `unknown field ${unknown.map((key) => `"${key}"`).join(', ')}`
          : issue.message;
      return [...(at.length > 0 ? [at.join(' ')] : []), what].join(': ');
    })
    .join('; ');
}

/** Hides misindented text, which may be a secret instead of a key. */
function isPlainKey(key: string): boolean {
  return /^[a-z_]{1,32}$/.test(key);
}

function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function invalid(file: string, reason: string, hint?: string): AppError {
  return new AppError('HOOK_FAILED', `hooks ${file}: ${reason}`, {
    hint: hint ?? 'The fields are listed in docs/reference/hooks.md.',
  });
}
