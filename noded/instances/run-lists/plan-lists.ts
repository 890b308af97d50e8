import type {
  DeclaredInput,
  InputValue,
  InputValues,
  RunListEnvironment,
  RunListName,
  RunListScript,
  ViewLifecycle,
  ViewScript,
} from '#shared/contract/lifecycle.ts';
import { formatInputValue, inputName, RUN_LISTS } from '#shared/contract/lifecycle.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { Secret } from '#shared/secret/secret.ts';
import { ownValue } from '#shared/json/own-value.ts';
import type { CollectedLists } from './collect-run-lists.ts';

/** Number of values in a hint, and length of each. */
const MAX_NAMED = 10;
const MAX_NAMED_LENGTH = 100;

/** Sources of scripts' variables. */
export interface InputSources {
  /** Names of the present OS parameters. */
  readonly parameters: ReadonlySet<string>;
  /** Inputs of the instance's run list. */
  readonly inputs: InputValues;
}

/**
 * Plans the lists of a view: numbered scripts with their variables. Parameter values are referenced
 * by name, not copied.
 */
export function planLists(
  { lists, attachments }: CollectedLists,
  sources: InputSources,
): Pick<ViewLifecycle, 'lists' | 'attachments' | 'env'> {
  const number = (list: RunListName): ViewScript[] =>
    lists[list].map((script, index) => ({
      name: numberedName(index, script),
      content: script.content,
      env: script.inputs === null ? null : planDeclared(script, sources),
    }));
  return {
    lists: {
      boot: number('boot'),
      operational: number('operational'),
      decommission: number('decommission'),
    },
    attachments: [...attachments],
    env: planCommon(sources),
  };
}

/** Returns a name such as `01-base`. */
export function numberedName(index: number, { name }: Pick<RunListScript, 'name'>): string {
  return `${String(index + 1).padStart(2, '0')}-${name}`;
}

/** Includes parameters with a valid shell name. Inputs take precedence. */
function planCommon({ parameters, inputs }: InputSources): RunListEnvironment {
  const named = [...parameters].filter((name) => inputName.safeParse(name).success);
  const env = new Map(named.map((name) => [name, { parameter: name }] as const));
  return Object.fromEntries([
    ...[...env].filter(([name]) => !Object.hasOwn(inputs, name)),
    ...Object.entries(inputs).flatMap(([name, value]) => encode(name, value)),
  ]);
}

function planDeclared(
  script: Pick<RunListScript, 'inputs'>,
  sources: InputSources,
): RunListEnvironment {
  return Object.fromEntries(
    (script.inputs ?? []).flatMap((input) => {
      const value = valueOf(input, sources);
      return value === null ? [] : encode(input.name, value);
    }),
  );
}

function valueOf(
  input: NonNullable<RunListScript['inputs']>[number],
  { inputs, parameters }: InputSources,
): InputValue | null {
  const given = ownValue(inputs, input.name);
  if (given !== undefined) return given;
  return parameters.has(input.name) ? { from: 'cred', name: input.name } : input.default;
}

function encode(name: string, value: InputValue): [string, RunListEnvironment[string]][] {
  if (value.from === 'ignore') return [];
  return [[name, value.from === 'text' ? { text: value.text } : { parameter: value.name }]];
}

/**
 * @throws AppError INPUT_MISSING: a required input has no value, or refers to a missing parameter
 */
export function refuseMissingInputs({ lists }: CollectedLists, sources: InputSources): void {
  const { inputs, parameters } = sources;
  for (const [name, value] of Object.entries(inputs)) {
    if (value.from !== 'cred' || parameters.has(value.name)) continue;
    throw missing(
      `input ${name} takes its value from ${value.name}, which is not an OS parameter`,
      {
        hint: `Define it: --os-parameters-secret ${value.name}=@FILE`,
      },
    );
  }
  for (const list of RUN_LISTS) {
    for (const script of lists[list]) {
      const bare = script.inputs?.find((input) => {
        const value = valueOf(input, sources);
        if (value?.from === 'cred') return !parameters.has(value.name);
        return input.required && (value === null || value.from === 'ignore');
      });
      if (bare === undefined) continue;
      throw missing(`script '${script.name}' (${list}) requires the input ${bare.name}`, {
        hint: `Define it as an OS parameter (-O ${bare.name}=VALUE), or in the Inputs of the run list.`,
      });
    }
  }
}

/** Values of OS parameters by name; null for a secret with an unknown value. */
export type KnownParameters = ReadonlyMap<string, string | Secret | null>;

/**
 * Compares inputs with the possible values that scripts declare. Accepts secrets with an unknown
 * value.
 * @throws AppError RUN_LIST_INVALID that names script and input, never the value
 */
export function refuseImpossibleInputs(
  { lists }: CollectedLists,
  { parameters, inputs }: { readonly parameters: KnownParameters; readonly inputs: InputValues },
): void {
  const sources = { parameters: new Set(parameters.keys()), inputs };
  for (const list of RUN_LISTS) {
    for (const script of lists[list]) {
      for (const input of script.inputs ?? []) {
        const value = valueOf(input, sources);
        if (value !== null) refuseImpossible(script, input, value, parameters);
      }
    }
  }
}

/** Compares one value. @throws AppError RUN_LIST_INVALID */
export function refuseImpossible(
  script: Pick<RunListScript, 'name'>,
  { name, possible, default: byDefault }: DeclaredInput,
  value: InputValue,
  parameters: KnownParameters,
): void {
  if (possible === undefined || value.from === 'ignore') return;
  const choices = byDefault === null ? possible : [...possible, byDefault];
  const isSource = (choice: InputValue): boolean =>
    choice.from === 'cred' && value.from === 'cred' && choice.name === value.name;
  const known = value.from === 'text' ? value.text : (parameters.get(value.name) ?? null);
  if (known === null || choices.some(isSource)) return;
  const isKnown = (text: string): boolean =>
    typeof known === 'string' ? known === text : known.equals(text);
  if (choices.some((choice) => choice.from === 'text' && isKnown(choice.text))) return;
  throw new AppError(
    'RUN_LIST_INVALID',
    `script '${script.name}' does not accept the value of its input ${name}`,
    { hint: `Give one of its possible values: ${listChoices(possible)}` },
  );
}

/** Bounds the hint, which is stored in the job. */
function listChoices(possible: readonly InputValue[]): string {
  const shown = possible.slice(0, MAX_NAMED).map((choice) => {
    const text = formatInputValue(choice);
    return text.length <= MAX_NAMED_LENGTH ? text : `${text.slice(0, MAX_NAMED_LENGTH)}…`;
  });
  const others = possible.length - shown.length;
  return `${shown.join(', ')}${others > 0 ? ` and ${others} more` : ''}`;
}

function missing(message: string, options: { readonly hint: string }): AppError {
  return new AppError('INPUT_MISSING', message, options);
}
