import { formatFloat } from '../format-numbers.ts';
import { CallError } from '../template-error.ts';
import { isDict, isList, sortedKeys, Struct, type Value } from '../values.ts';

const MAX_DEPTH = 200;

interface JsonForm {
  /** Whether <, > and & are escaped, as in Go's encoder. */
  readonly escapesHtml: boolean;
  readonly indent?: string;
}

export function encodeJson(
  value: Value,
  spend: (steps: number) => void,
  form: JsonForm,
  depth = 0,
): string {
  spend(1);
  if (depth > MAX_DEPTH) throw new CallError('a value is nested too deeply for JSON');
  const [open, close] =
    form.indent === undefined
      ? ['', '']
      : [`\n${form.indent.repeat(depth + 1)}`, `\n${form.indent.repeat(depth)}`];
  const join = (parts: readonly string[]): string =>
    parts.length === 0 ? '' : open + parts.join(`,${open}`) + close;
  if (isList(value))
    return `[${join(value.map((part) => encodeJson(part, spend, form, depth + 1)))}]`;
  if (isDict(value)) {
    const colon = form.indent === undefined ? ':' : ': ';
    const parts = sortedKeys(value, spend).map(
      (key) =>
        encodeText(key, form) + colon + encodeJson(value.get(key) ?? null, spend, form, depth + 1),
    );
    return `{${join(parts)}}`;
  }
  if (value instanceof Struct) {
    if (value.asDict === null) throw new CallError(`a ${value.typeName} cannot be written as JSON`);
    return encodeJson(value.asDict(spend), spend, form, depth);
  }
  if (typeof value === 'string') {
    spend(value.length >> 4);
    return encodeText(value, form);
  }
  return typeof value === 'number' ? encodeNumber(value) : String(value);
}

function encodeNumber(value: number): string {
  if (!Number.isFinite(value)) throw new CallError('this number cannot be written as JSON');
  const magnitude = Math.abs(value);
  const isPlain = value === 0 || (magnitude >= 1e-6 && magnitude < 1e21);
  if (isPlain) return formatFloat(value, 'f', -1);
  return formatFloat(value, 'e', -1).replace(/e-0(\d)$/, 'e-$1');
}

function encodeText(text: string, { escapesHtml }: JsonForm): string {
  const quoted = JSON.stringify(text)
    .replaceAll('\\b', '\\u0008')
    .replaceAll('\\f', '\\u000c')
    .replaceAll('\u2028', '\\u2028')
    .replaceAll('\u2029', '\\u2029');
  if (!escapesHtml) return quoted;
  return quoted.replace(/[<>&]/g, (each) => `\\u00${each.charCodeAt(0).toString(16)}`);
}
