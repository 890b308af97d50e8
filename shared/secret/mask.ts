import { othersTurn } from '../clock/turns.ts';
import { REDACTED } from '../contract/redacted.ts';
import { writtenForms } from './written-forms.ts';

/** Shorter values would mask ordinary text ("yes", "1") and reveal their places. */
const MIN_MASKED_LENGTH = 4;
/** Programs print a value line by line, and C programs end it at a NUL. */
const PART_END = /[\0\r\n]/;
/**
 * Lines of all values that are hidden in all written forms. Further lines are hidden in their plain
 * form only: dozens of forms of each would take seconds and hundreds of megabytes.
 */
const MAX_LINES_WITH_FORMS = 4096;
/** Slots of the table of possible starts; a power of two. */
const SLOTS = 65_536;
/** The base of the rolling hashes: odd, and larger than a byte. */
const BASE = 16_777_619;

export function canBeMasked(value: string): boolean {
  return value.trim().length >= MIN_MASKED_LENGTH;
}

/**
 * Creates a mask. It replaces every occurrence of the values, and of each of their lines (without
 * surrounding blanks), by `<redacted>`, in plain and other written forms (`writtenForms`).
 * Overlapping matches are hidden as a whole.
 * @param length limit of characters of the input and the masked output; a value that begins within
 * it is hidden to its end
 */
export function createMask(
  values: Iterable<string>,
  length = Number.POSITIVE_INFINITY,
): (text: string) => string {
  const steps = maskSteps(values, length);
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/**
 * Does the same as `createMask` in turns, for expensive values of users: other work runs in
 * between.
 */
export async function createMaskInTurns(
  values: Iterable<string>,
): Promise<(text: string) => string> {
  const steps = maskSteps(values, Number.POSITIVE_INFINITY);
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    await othersTurn();
  }
}

type Steps<Made> = Generator<undefined, Made, undefined>;

/** Makes a mask in steps of some milliseconds. */
function* maskSteps(values: Iterable<string>, length: number): Steps<(text: string) => string> {
  const needles = new Set<string>();
  for (const { text, forms } of listParts(values)) {
    if (!canBeMasked(text)) continue;
    needles.add(text.trim());
    for (const form of forms) {
      if (canBeMasked(form)) needles.add(form);
      yield;
    }
  }
  const index = yield* indexSteps(needles);
  if (index.byStart.size === 0) return (text) => text.slice(0, length);
  return (text) => maskText(text, length, index).slice(0, length);
}

/** A value or one of its lines, and its written forms. */
interface Part {
  readonly text: string;
  readonly forms: Iterable<string>;
}

function listParts(values: Iterable<string>): readonly Part[] {
  const wholes = new Set<string>();
  const formed = new Set<string>();
  const plain = new Set<string>();
  const split = [...values].map((value) => ({ value, lines: value.split(PART_END) }));
  let count = 0;
  // Values of few lines first: a value of many lines must not use up the limit.
  for (const { value, lines } of split.toSorted((a, b) => a.lines.length - b.lines.length)) {
    wholes.add(value).add(value.trim());
    count += lines.length;
    const kind = count <= MAX_LINES_WITH_FORMS ? formed : plain;
    for (const line of lines) kind.add(line.trim());
  }
  return [
    ...[...wholes.union(formed)].map((text) => ({ text, forms: writtenForms(text) })),
    ...[...plain].map((text) => ({ text, forms: [] })),
  ];
}

interface NeedleIndex {
  /** Marks the first characters of all needles: most places of a text need no further check. */
  readonly slots: Uint8Array;
  /** Hashes of needles by their first characters, then by their length, the longest first. */
  readonly byStart: ReadonlyMap<string, ReadonlyMap<number, ReadonlySet<number>>>;
  /** BASE to the power of each length of a needle. */
  readonly powers: Int32Array;
}

function* indexSteps(needles: Iterable<string>): Steps<NeedleIndex> {
  const slots = new Uint8Array(SLOTS);
  const byStart = new Map<string, Map<number, Set<number>>>();
  const sorted = [...needles].sort((a, b) => b.length - a.length);
  for (const needle of sorted) {
    slots[slotAt(needle, 0)] = 1;
    const byLength = ensure(
      byStart,
      needle.slice(0, MIN_MASKED_LENGTH),
      () => new Map<number, Set<number>>(),
    );
    const hashes = ensure(byLength, needle.length, () => new Set<number>());
    hashes.add(hashPrefixes(needle).at(-1) ?? 0);
    yield;
  }
  const powers = new Int32Array((sorted[0]?.length ?? 0) + 1).fill(1);
  for (let length = 1; length < powers.length; length += 1)
    powers[length] = Math.imul(powers[length - 1] ?? 1, BASE);
  return { slots, byStart, powers };
}

function ensure<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const known = map.get(key);
  if (known !== undefined) return known;
  const made = make();
  map.set(key, made);
  return made;
}

/** Hashes the characters that begin at a place. */
function slotAt(text: string, at: number): number {
  let slot = 0;
  for (let next = at; next < at + MIN_MASKED_LENGTH; next += 1)
    slot = Math.imul(slot, BASE) + text.charCodeAt(next);
  return slot & (SLOTS - 1);
}

function hashPrefixes(text: string): Int32Array {
  const hashes = new Int32Array(text.length + 1);
  for (let at = 0; at < text.length; at += 1)
    hashes[at + 1] = Math.imul(hashes[at] ?? 0, BASE) + text.charCodeAt(at);
  return hashes;
}

/**
 * Masks a text. A user may choose both the value and the text, so the time must not grow with their
 * common parts: hashes are compared, and an accidental match hides a word too many.
 */
function maskText(whole: string, length: number, { slots, byStart, powers }: NeedleIndex): string {
  // No value that begins before `length` ends behind this.
  const text = whole.slice(0, length + powers.length);
  let prefixes: Int32Array | undefined;
  const hasNeedle = (at: number, size: number, hashes: ReadonlySet<number>): boolean => {
    if (at + size > text.length) return false;
    prefixes ??= hashPrefixes(text);
    const before = Math.imul(prefixes[at] ?? 0, powers[size] ?? 0);
    return hashes.has(((prefixes[at + size] ?? 0) - before) | 0);
  };
  const longestAt = (at: number): number => {
    const byLength = byStart.get(text.slice(at, at + MIN_MASKED_LENGTH));
    for (const [size, hashes] of byLength ?? []) if (hasNeedle(at, size, hashes)) return size;
    return 0;
  };
  let masked = '';
  let keptUntil = 0;
  // Bounds of the present hidden stretch.
  let start = -1;
  let end = -1;
  const hide = (): void => {
    if (start === -1) return;
    masked += text.slice(keptUntil, start) + REDACTED;
    keptUntil = end;
  };
  const lastAt = Math.min(text.length - MIN_MASKED_LENGTH, length - 1);
  for (let at = 0; at <= lastAt; at += 1) {
    if (slots[slotAt(text, at)] === 0) continue;
    const found = longestAt(at);
    if (found === 0) continue;
    if (at >= end) {
      hide();
      start = at;
    }
    end = Math.max(end, at + found);
  }
  hide();
  return masked + text.slice(keptUntil, length);
}
