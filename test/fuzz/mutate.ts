import type { SeededRandom } from '../lab/seeded-random.ts';

/** Lengths, signs and limits that parsers often get wrong. */
const NUMBERS = [
  ...[0, 1, 2, 7, 8, 127, 128, 255, 256, 511, 512, 513, 4095, 4096, 65_535, 65_536],
  ...[2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1, 2 ** 32, 2 ** 53 - 1, 2 ** 53, 1e21, 1e300],
];
const WORDS = [
  ...[
    '',
    ' ',
    '\t',
    '\r\n',
    '\n\n',
    '\0',
    '=',
    ':',
    '[',
    ']',
    '{',
    '}',
    '"',
    "'",
    '\\',
    '#',
    ';',
    ',',
  ],
  ...[
    '..',
    '/',
    '../../etc/shadow',
    '%00',
    '%s',
    '$(id)',
    '`',
    '\u{1f600}',
    '\ufeff',
    '\u2028',
    'é',
  ],
  ...['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'null', 'None', 'NaN', 'Infinity'],
  ...[
    '-1',
    '0.5',
    '1e400',
    '0x10',
    '00',
    '08',
    '9007199254740993',
    'true',
    '~',
    '&a',
    '*a',
    '<<',
    '!!x',
  ],
];
/** Repetitions up to this size reveal superlinear work. */
const MAX_STRETCHED_BYTES = 16 * 1024;
const STRETCH_ONE_IN = 200;
/** Strings that make regular expressions backtrack, or that nest. */
const STRETCHED = [
  ' ',
  ' ',
  ' ',
  '\t',
  '\n',
  'a',
  '0',
  '.',
  '-',
  '[',
  '(',
  '{',
  '"',
  '&a ',
  '- ',
  'a: ',
];

type Change = (bytes: Buffer, random: SeededRandom) => Buffer;

function splice(bytes: Buffer, at: number, removed: number, added: Buffer): Buffer {
  return Buffer.concat([bytes.subarray(0, at), added, bytes.subarray(at + removed)]);
}

const changes: readonly Change[] = [
  (bytes, random) => {
    const changed = Buffer.from(bytes);
    if (changed.length > 0) {
      const at = random.below(changed.length);
      changed[at] = (changed[at] ?? 0) ^ (1 << random.below(8));
    }
    return changed;
  },
  (bytes, random) => {
    const changed = Buffer.from(bytes);
    if (changed.length > 0)
      changed[random.below(changed.length)] = random.pick([0, 1, 0x7f, 0x80, 0xff, 0x20, 0x0a]);
    return changed;
  },
  (bytes, random) => bytes.subarray(0, random.below(bytes.length + 1)),
  (bytes, random) =>
    splice(bytes, random.below(bytes.length + 1), random.below(9), Buffer.alloc(0)),
  (bytes, random) =>
    splice(bytes, random.below(bytes.length + 1), random.below(3), Buffer.from(random.pick(WORDS))),
  (bytes, random) =>
    splice(
      bytes,
      random.below(bytes.length + 1),
      random.below(4),
      Buffer.from(String(random.pick(NUMBERS))),
    ),
  (bytes, random) => {
    const at = random.below(bytes.length + 1);
    const part = bytes.subarray(at, at + 1 + random.below(64));
    return splice(bytes, random.below(bytes.length + 1), 0, part);
  },
  (bytes, random) => {
    if (bytes.length < 8) return bytes;
    const changed = Buffer.from(bytes);
    const at = random.below(bytes.length - 8);
    const number = random.pick(NUMBERS);
    switch (random.below(4)) {
      case 0:
        changed.writeUInt16BE(number % 65_536, at);
        break;
      case 1:
        changed.writeUInt32BE(number % 2 ** 32, at);
        break;
      case 2:
        changed.writeUInt32LE(number % 2 ** 32, at);
        break;
      default:
        changed.writeBigUInt64BE(BigInt(Math.min(number, 2 ** 63)), at);
    }
    return changed;
  },
];

/** Makes up to four small changes; rarely repeats a part of the input many times. */
export function mutate(bytes: Buffer, random: SeededRandom): Buffer {
  let changed = bytes;
  for (let count = random.below(5); count > 0; count -= 1)
    changed = random.pick(changes)(changed, random);
  return random.below(STRETCH_ONE_IN) === 0 ? stretch(changed, random) : changed;
}

function stretch(bytes: Buffer, random: SeededRandom): Buffer {
  const at = random.below(bytes.length + 1);
  const part =
    random.below(2) === 0
      ? Buffer.from(random.pick(STRETCHED))
      : bytes.subarray(at, at + 1 + random.below(16));
  if (part.length === 0) return bytes;
  const times = Math.floor((MAX_STRETCHED_BYTES * (1 + random.below(4))) / 4 / part.length);
  return splice(bytes, at, 0, Buffer.concat(Array.from({ length: times }, () => part)));
}

const SCALARS: readonly unknown[] = [
  ...[null, true, false, '', [], {}, [{}], -1, 0.5, -0, ...NUMBERS, ...WORDS],
];
const MAX_NESTING = 20_000;

/**
 * Returns a copy of the JSON value with up to three parts replaced, removed, doubled, nested or
 * renamed.
 */
export function mutateJson(value: unknown, random: SeededRandom): unknown {
  let changed: unknown = JSON.parse(JSON.stringify(value));
  for (let count = random.below(4); count > 0; count -= 1) changed = changePart(changed, random);
  return changed;
}

function changePart(value: unknown, random: SeededRandom): unknown {
  if (typeof value !== 'object' || value === null || random.below(4) === 0)
    return replacement(value, random);
  if (Array.isArray(value)) {
    const items = value as unknown[];
    const at = random.below(items.length + 1);
    if (at === items.length || random.below(4) === 0) items.push(replacement(items[0], random));
    else items[at] = changePart(items[at], random);
    return items;
  }
  const entries = Object.entries(value);
  const [key = '', part] = entries[random.below(entries.length)] ?? [];
  switch (random.below(5)) {
    case 0:
      return Object.fromEntries(entries.filter(([other]) => other !== key));
    case 1:
      // fromEntries makes `__proto__` an own key; an assignment would not.
      return Object.fromEntries([...entries, [random.pick(WORDS), replacement(part, random)]]);
    default:
      return Object.fromEntries(
        entries.map(([other, old]) => [other, other === key ? changePart(old, random) : old]),
      );
  }
}

function replacement(value: unknown, random: SeededRandom): unknown {
  const kind = random.below(150);
  if (kind === 0) return nest(value, random.below(10) === 0 ? MAX_NESTING : 50);
  if (kind === 1) return Array.from({ length: 300 }, () => value);
  if (kind === 2) return random.pick(WORDS).repeat(2_000);
  if (kind < 20 && typeof value === 'string') return value + random.pick(WORDS);
  // Later changes may modify the object.
  const picked = random.pick(SCALARS);
  return typeof picked === 'object' ? structuredClone(picked) : picked;
}

/** Tells printJson that a value contains a Nested. */
class NestedFound extends Error {}

/** Deep nesting as text, because such a value cannot be cloned or stringified. */
class Nested {
  readonly #depth: number;
  readonly #inner: unknown;

  constructor(inner: unknown, depth: number) {
    this.#inner = inner;
    this.#depth = depth;
  }

  toJSON(): never {
    throw new NestedFound();
  }

  print(): string {
    return '['.repeat(this.#depth) + printJson(this.#inner) + ']'.repeat(this.#depth);
  }
}

function nest(value: unknown, depth: number): Nested {
  return new Nested(value instanceof Nested ? null : value, depth);
}

/** Prints the result of `mutateJson` as JSON. */
export function printJson(value: unknown): string {
  try {
    return JSON.stringify(value) ?? 'null';
  } catch (error) {
    if (!(error instanceof NestedFound)) throw error;
    return printParts(value);
  }
}

function printParts(value: unknown): string {
  if (value instanceof Nested) return value.print();
  if (Array.isArray(value)) return `[${value.map(printParts).join(',')}]`;
  if (typeof value === 'object' && value !== null)
    return `{${Object.entries(value)
      .map(([key, part]) => `${JSON.stringify(key)}:${printParts(part)}`)
      .join(',')}}`;
  return JSON.stringify(value) ?? 'null';
}
