import { formatFloat } from './template/format-numbers.ts';
import { CallError } from './template/template-error.ts';
import { isDict, isList, sortedKeys, Struct, type Value } from './template/values.ts';

const MAX_DEPTH = 100;
/** Texts that every version of YAML reads as text. */
const PLAIN = /^[A-Za-z_/][\w/.@+-]*$/;
const WORDS = /^(?:true|false|yes|no|on|off|y|n|null|nan|inf)$/i;

/** Encodes a value as YAML in block style. Ambiguous texts are in double quotes. */
export function encodeYaml(value: Value, spend: (steps: number) => void): string {
  return `${encode(value, spend, 0).replace(/^\n/, '')}\n`;
}

function encode(value: Value, spend: (steps: number) => void, depth: number): string {
  spend(1);
  if (depth > MAX_DEPTH) throw new CallError('a value is nested too deeply for YAML');
  const line = `\n${'  '.repeat(depth)}`;
  const below = (part: Value): string => {
    const text = encode(part, spend, depth + 1);
    return text.startsWith('\n') ? text : ` ${text}`;
  };
  if (isList(value))
    return value.length === 0 ? '[]' : value.map((part) => `${line}-${below(part)}`).join('');
  if (isDict(value)) {
    if (value.size === 0) return '{}';
    return sortedKeys(value, spend)
      .map((key) => `${line}${encodeText(key)}:${below(value.get(key) ?? null)}`)
      .join('');
  }
  if (value instanceof Struct) {
    if (value.asDict === null) throw new CallError(`a ${value.typeName} cannot be written as YAML`);
    return encode(value.asDict(spend), spend, depth);
  }
  if (typeof value === 'string') {
    spend(value.length >> 4);
    return encodeText(value);
  }
  return typeof value === 'number' ? formatFloat(value, 'f', -1) : String(value);
}

function encodeText(text: string): string {
  return PLAIN.test(text) && !WORDS.test(text) ? text : JSON.stringify(text);
}
