import type { Document } from 'yaml';
import type { z } from 'zod';
import { type InputValue, parseInputValue } from '#shared/contract/lifecycle.ts';
import { AppError, messageOf } from '#shared/errors/app-error.ts';
import { lineOfPath } from '#shared/yaml/line-of-path.ts';
import { readYaml } from '#shared/yaml/read-yaml.ts';

type Path = readonly PropertyKey[];

/** Values of a YAML document with their lines. */
export interface PlacedDocument<T> {
  readonly data: T;
  /** Returns the line of a value, counted from 1; of its parent if the value is absent. */
  readonly lineOf: (path: Path) => number;
}

/**
 * Parses a part of a run list.
 * @param text the whole file, or a part after as many empty lines as precede it
 * @throws AppError RUN_LIST_INVALID that names file and line
 */
export function parsePlaced<T>(
  text: string,
  file: string,
  schema: z.ZodType<T>,
  hint?: string,
): PlacedDocument<T> {
  const read = readYaml(text);
  if ('problem' in read) throw invalidRunList(`${file}: ${read.problem.reason}`, hint);
  const { document } = read;
  const lineOf = (path: Path): number => lineOfPath(document, text, path) ?? 1;
  const value = valueOf(document, file) ?? {};
  if (hasLostKey(value)) throw invalidRunList(`${file}: '__proto__' is not an input name`, hint);
  const parsed = schema.safeParse(value);
  if (parsed.success) return { data: parsed.data, lineOf };
  const [issue] = parsed.error.issues;
  const path = issue?.path ?? [];
  const line = lineOf(issue?.code === 'unrecognized_keys' ? [...path, issue.keys[0] ?? ''] : path);
  const where = path.length > 0 ? `${path.join('.')}: ` : '';
  throw invalidRunList(`${file}: line ${line}: ${where}${issue?.message ?? ''}`, hint);
}

function valueOf(document: Document, file: string): unknown {
  try {
    return document.toJS({ maxAliasCount: 50 });
  } catch {
    throw invalidRunList(`${file}: its aliases expand to too much`, 'Write the values in full');
  }
}

/** Tells whether a schema would drop a key silently: zod ignores `__proto__` in a record. */
function hasLostKey(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return Object.hasOwn(value, '__proto__') || Object.values(value).some(hasLostKey);
}

/**
 * @param place returns file and line, which take time to find
 * @throws AppError INPUT_MISSING that names file, line and input, never the value
 */
export function parseInputAt(
  name: string,
  value: string | number | boolean | null,
  place: () => string,
): InputValue {
  try {
    return parseInputValue(value === null ? 'ignore' : String(value));
  } catch (error) {
    throw new AppError('INPUT_MISSING', `${place()}: input ${name}: ${messageOf(error)}`, {
      cause: error,
    });
  }
}

export function invalidRunList(
  message: string,
  hint = 'Write RightScripts: {Boot: [FILE, …], Operational: […], Decommission: […]}, Inputs: {NAME: text:VALUE}',
): AppError {
  return new AppError('RUN_LIST_INVALID', message, { hint });
}
