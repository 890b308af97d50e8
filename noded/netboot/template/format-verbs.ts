import { formatFloat } from './format-numbers.ts';
import { formatEach, formatPlain, MAX_TEXT_LENGTH, type Spend } from './format-each.ts';
import { quoteGo, quoteRune } from './quote.ts';
import { CallError } from './template-error.ts';
import { typeName, type Value } from './values.ts';

/** The part between % and its verb. `*` takes the number from the arguments. */
export interface Directive {
  readonly verb: string;
  readonly flags: string;
  readonly width: number | '*' | null;
  readonly precision: number | '*' | null;
}

type Leaf = Exclude<Value, object> | null;

export function* parseDirectives(format: string): Generator<string | Directive> {
  let at = 0;
  for (const match of format.matchAll(
    /%(?<flags>[-+# 0]*)(?<width>\*|\d+)?(?<precision>\.(?:\*|\d*))?(?<verb>[^]|$)/gu,
  )) {
    const { flags = '', width, precision, verb = '' } = match.groups ?? {};
    yield format.slice(at, match.index);
    at = match.index + match[0].length;
    if (verb === '[') throw new CallError('printf: argument numbers are not supported');
    if (verb === '%') yield '%';
    else
      yield {
        verb,
        flags,
        width: readNumber(width),
        precision: precision === undefined ? null : readNumber(precision.slice(1) || '0'),
      };
  }
  yield format.slice(at);
}

function readNumber(text: string | undefined): number | '*' | null {
  if (text === undefined) return null;
  if (text === '*') return '*';
  const number = Number(text);
  if (number > MAX_TEXT_LENGTH) throw new CallError('printf: the width is too large');
  return number;
}

interface Layout {
  readonly verb: string;
  readonly flags: string;
  readonly width: number;
  readonly precision: number | null;
}

/** @param take returns the next argument, undefined when none is left */
export function formatVerb(
  directive: Directive,
  take: () => Value | undefined,
  spend: Spend,
): string {
  const { verb } = directive;
  const width = directive.width === '*' ? takeNumber(take) : (directive.width ?? 0);
  const precision = directive.precision === '*' ? takeNumber(take) : directive.precision;
  const aligned = width < 0 ? `${directive.flags}-` : directive.flags;
  // For %v a plus has another meaning, which only structs have.
  const flags = verb === 'v' ? aligned.replaceAll('+', '') : aligned;
  const layout: Layout = { verb, flags, width: Math.abs(width), precision };
  spend(layout.width >> 5);
  if (verb === '') return '%!(NOVERB)';
  const value = take();
  if (value === undefined) return `%!${verb}(MISSING)`;
  if (verb === 'extra') return named(value, spend, layout);
  if (verb === 'T') return pad(typeName(value), layout);
  if (verb === 'v' && flags.includes('#') && typeof value === 'object' && value !== null)
    throw new CallError('printf: %#v of a list or a map is not supported');
  return formatEach(value, spend, (leaf) => formatLeaf(leaf, layout, spend));
}

function takeNumber(take: () => Value | undefined): number {
  const value = take();
  if (typeof value !== 'bigint' || value > 1_000_000n || value < -1_000_000n)
    throw new CallError('printf: * needs a number');
  return Number(value);
}

function formatLeaf(value: Leaf, layout: Layout, spend: Spend): string {
  const { verb } = layout;
  spend(costOf(value, layout));
  const text = value === null ? null : formatKnown(value, layout);
  if (text !== null) return text;
  if (value === null) return verb === 'v' ? pad('<nil>', layout) : `%!${verb}(<nil>)`;
  return `%!${verb}(${named(value, spend, layout)})`;
}

/** Returns the steps: for a number its digits, for a text its characters, except for a plain %s. */
function costOf(value: Leaf, { verb, width, precision, flags }: Layout): number {
  if (typeof value === 'number') return 8;
  if (typeof value !== 'string') return 1;
  const isAsItIs = 'sv'.includes(verb) && width === 0 && precision === null;
  return isAsItIs && !flags.includes('#') ? 1 : value.length >> 2;
}

function named(value: Value, spend: Spend, layout: Layout): string {
  if (value === null) return '<nil>';
  const plain: Layout = { ...layout, verb: 'v', flags: layout.flags.replaceAll('#', '') };
  return `${typeName(value)}=${formatEach(value, spend, (leaf) =>
    leaf === null ? '<nil>' : (formatKnown(leaf, plain) ?? formatPlain(leaf)),
  )}`;
}

/** Returns null when the type does not have the verb. */
function formatKnown(value: Exclude<Leaf, null>, layout: Layout): string | null {
  if (typeof value === 'bigint') return formatInt(value, layout);
  if (typeof value === 'number') return formatNumber(value, layout);
  if (typeof value === 'string') return formatText(value, layout);
  return 'tv'.includes(layout.verb) ? pad(String(value), layout) : null;
}

const RADIX: ReadonlyMap<string, readonly [radix: number, sharp: string]> = new Map([
  ['d', [10, '']],
  ['v', [10, '']],
  ['b', [2, '0b']],
  ['o', [8, '0']],
  ['O', [8, '']],
  ['x', [16, '0x']],
  ['X', [16, '0X']],
]);

function formatInt(value: bigint, layout: Layout): string | null {
  const { verb, flags, precision } = layout;
  const radix = RADIX.get(verb);
  if (!radix) return formatRune(value, layout);
  const magnitude = (value < 0n ? -value : value).toString(radix[0]);
  const digits = verb === 'X' ? magnitude.toUpperCase() : magnitude;
  const least = precision === null ? digits : digits.padStart(Math.min(precision, 1e6), '0');
  const shown = precision === 0 && value === 0n ? '' : least;
  const prefix = verb === 'O' ? '0o' : flags.includes('#') ? radix[1] : '';
  // An octal number begins with one zero, not two.
  const lead = prefix === '0' && shown.startsWith('0') ? '' : prefix;
  return padNumber(signOf(value < 0n, layout), lead, shown, layout, precision === null);
}

function formatRune(value: bigint, layout: Layout): string | null {
  const code = value < 0n || value > 0x10ffffn ? 0xfffd : Number(value);
  const { verb, flags } = layout;
  if (verb === 'c') return pad(String.fromCodePoint(code), layout);
  if (verb === 'q') return pad(quoteRune(code, flags.includes('+')), layout);
  if (verb !== 'U') return null;
  const name = `U+${BigInt.asUintN(64, value).toString(16).toUpperCase().padStart(4, '0')}`;
  return pad(flags.includes('#') ? `${name} '${String.fromCodePoint(code)}'` : name, layout);
}

function formatNumber(value: number, layout: Layout): string | null {
  const { verb, precision } = layout;
  const form = verb.toLowerCase();
  if ('xXb'.includes(verb)) throw new CallError(`printf: %${verb} of a float is not supported`);
  if (!'vgGeEfF'.includes(verb)) return null;
  const shape = form === 'v' ? 'g' : form === 'e' ? 'e' : form === 'f' ? 'f' : 'g';
  const digits = precision ?? (shape === 'g' ? -1 : 6);
  if (digits > 100) throw new CallError('printf: the precision is too large');
  const text = formatFloat(value, shape, digits);
  const isNegative = text.startsWith('-');
  const bare = text.replace(/^[+-]/, '');
  const cased = verb === 'G' || verb === 'E' ? bare.toUpperCase().replace('INF', 'Inf') : bare;
  const isFinite = Number.isFinite(value);
  const sign = text.startsWith('+') ? '+' : signOf(isNegative, layout);
  return padNumber(sign, '', cased, layout, isFinite);
}

function formatText(value: string, layout: Layout): string | null {
  const { verb, flags, precision } = layout;
  const cut = (text: string): string =>
    precision === null ? text : [...text].slice(0, precision).join('');
  switch (verb) {
    case 'v':
      return pad(flags.includes('#') ? quoteGo(value) : cut(value), layout);
    case 's':
      return pad(cut(value), layout);
    case 'q': {
      const text = cut(value);
      const isRaw = flags.includes('#') && /^[^`\p{Cc}\u{FEFF}]*$/u.test(text);
      return pad(isRaw ? `\`${text}\`` : quoteGo(text, flags.includes('+')), layout);
    }
    case 'x':
    case 'X': {
      const bytes = Buffer.from(value).subarray(0, precision ?? undefined);
      const hex = formatHex(bytes, flags);
      return pad(verb === 'X' ? hex.toUpperCase() : hex, layout);
    }
    default:
      return null;
  }
}

function formatHex(bytes: Buffer, flags: string): string {
  const [isSpaced, isSharp] = [flags.includes(' '), flags.includes('#')];
  if (bytes.length === 0) return '';
  if (!isSpaced) return (isSharp ? '0x' : '') + bytes.toString('hex');
  const each = [...bytes].map((byte) => (isSharp ? '0x' : '') + byte.toString(16).padStart(2, '0'));
  return each.join(' ');
}

function signOf(isNegative: boolean, { flags }: Layout): string {
  if (isNegative) return '-';
  if (flags.includes('+')) return '+';
  return flags.includes(' ') ? ' ' : '';
}

function padNumber(
  sign: string,
  prefix: string,
  digits: string,
  layout: Layout,
  mayHaveZeros: boolean,
): string {
  const { flags, width } = layout;
  const hasZeros = mayHaveZeros && flags.includes('0') && !flags.includes('-');
  // Go does not count the prefix when it fills with zeros.
  const filled = hasZeros ? digits.padStart(width - sign.length, '0') : digits;
  return pad(sign + prefix + filled, { ...layout, flags: flags.replaceAll('0', '') });
}

function pad(text: string, { flags, width }: Layout): string {
  if (width === 0) return text;
  const missing = width - [...text].length;
  if (missing <= 0) return text;
  if (flags.includes('-')) return text + ' '.repeat(missing);
  return (flags.includes('0') ? '0' : ' ').repeat(missing) + text;
}
