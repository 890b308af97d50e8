import { z } from 'zod';
import type { DeclaredInput } from '#shared/contract/lifecycle.ts';
import { invalidRunList, parseInputAt, parsePlaced } from './run-list-yaml.ts';

const scalar = z.union([z.string(), z.number(), z.boolean()]);
/** The comment at the head of a RightScript. */
const metadata = z.strictObject({
  'RightScript Name': z.string().optional(),
  Description: z.string().nullish(),
  Inputs: z
    .record(
      z.string(),
      z.strictObject({
        'Input Type': z.string().optional(),
        Category: z.string().nullish(),
        Description: z.string().nullish(),
        Required: z.boolean().optional(),
        Advanced: z.boolean().optional(),
        Default: scalar.nullish(),
        'Possible Values': z.array(scalar).nullish(),
      }),
    )
    .nullish(),
  Attachments: z.array(z.string()).nullish(),
  Packages: z.unknown().optional(),
});

const HINT =
  'Write the inputs of a script as # Inputs: {NAME: {Required: true, Default: text:VALUE}}';
const START = /^#[ \t]*---[ \t]*$/;
const END = /^#[ \t]*\.\.\.[ \t]*$/;
/** The first lines of a header. Scripts have other comments that begin with dashes. */
const BEGINNING =
  /^#[ \t]*---[ \t]*\n#[ \t]*(?:RightScript Name|Description|Inputs|Attachments|Packages):/m;

export interface ScriptHeader {
  /** Null: the script declares no inputs. */
  readonly inputs: readonly DeclaredInput[] | null;
  /** File names. */
  readonly attachments: readonly string[];
}

/**
 * Parses the header of a RightScript, which is optional.
 * @throws AppError RUN_LIST_INVALID or INPUT_MISSING, with the line of the file
 */
export function readScriptHeader(script: string, file: string): ScriptHeader {
  const text = script.replaceAll('\r\n', '\n');
  const head = findHeader(text.split('\n'));
  if (head === null) {
    refuseUnended(text, file);
    return { inputs: null, attachments: [] };
  }
  // Makes lines of the document equal to lines of the file.
  const yaml =
    '\n'.repeat(head.linesBefore) + head.lines.map((line) => line.replace(/^# ?/, '')).join('\n');
  const { data, lineOf } = parsePlaced(yaml, file, metadata, HINT);
  const inputs = Object.entries(data.Inputs ?? {}).map(([name, declared]): DeclaredInput => {
    const parse = (value: z.infer<typeof scalar>, ...path: readonly PropertyKey[]) =>
      parseInputAt(name, value, () => `${file}: line ${lineOf(['Inputs', name, ...path])}`);
    const { Required, Default, 'Possible Values': possible } = declared;
    return {
      name,
      required: Required ?? false,
      default: Default == null ? null : parse(Default, 'Default'),
      ...(possible?.length && {
        possible: possible.map((value, index) => parse(value, 'Possible Values', index)),
      }),
    };
  });
  return { inputs: data.Inputs == null ? null : inputs, attachments: data.Attachments ?? [] };
}

interface FoundHeader {
  readonly lines: readonly string[];
  readonly linesBefore: number;
}

/** Returns the comment lines between the first start and its end. */
function findHeader(lines: readonly string[]): FoundHeader | null {
  let start: number | null = null;
  for (const [at, line] of lines.entries()) {
    if (!line.startsWith('#')) start = null;
    else if (start === null) start = START.test(line) ? at : null;
    else if (END.test(line)) return { lines: lines.slice(start + 1, at), linesBefore: start + 1 };
  }
  return null;
}

function refuseUnended(text: string, file: string): void {
  const beginning = BEGINNING.exec(text);
  if (beginning === null) return;
  const line = text.slice(0, beginning.index).split('\n').length;
  throw invalidRunList(
    `${file}: line ${line}: the header does not end`,
    "End the header with a line '# ...', without other lines than comments before it",
  );
}
