/** Patterns that make a sentence hard to understand, by name. */
const PATTERNS = {
  'what-clause':
    /\b[Ww]hat (?:is|was|are|were|has|had|have|no|it|they|nothing|nobody|somebody|only|else|comes|came|goes|went|a|an|the|its|this|that|another|others?)\b(?![^.]*\?)/g,
  who: /\b(?:[Ww]ho|[Ww]hom|[Ww]hoever|[Ww]homever)\b/g,
  nobody: /\b(?:[Nn]obody|[Ss]omebody|[Ee]verybody|[Aa]nybody|[Nn]o one)\b/g,
  'one that': /\b(?:[Oo]ne|[Tt]hose|[Tt]hat) (?:that|which|who|whose)\b/g,
  idiom:
    /\b(?:goes on|go on|went on|gone on|is told|are told|was told|says of|told of|lets? in|take[sn]? (?:it |them )?back|anew|any more|that there (?:is|are)|of then|of before|is none of)\b/g,
} as const;
/** A named person may be "who". */
const PERSON =
  /\b(?:operator|user|author|administrator|attacker|reader|engineer|person|people|tenant|maintainer|newcomer)s?,? who\b/g;
const LITERAL = /'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|`((?:[^`\\]|\\.)*)`/g;
/** A string with fewer spaces counts as a name. */
const MIN_SPACES = 3;

export type ProseKind = 'document' | 'string' | 'comment';

/** The prose of one line of a file. */
export interface Prose {
  readonly kind: ProseKind;
  readonly text: string;
}

export interface ProseCount {
  readonly words: number;
  readonly hits: number;
}

/**
 * Extracts the prose of a line.
 * @param path relative to the checkout; its suffix determines how the line is read
 */
export function proseOf(path: string, line: string): Prose {
  if (path.endsWith('.md')) {
    const isLeftOut = line.startsWith('#') || line.includes('| found here');
    return { kind: 'document', text: isLeftOut ? '' : line.replaceAll(/"[^"]*"/g, '') };
  }
  const trimmed = line.trim();
  if (/^(?:\/\/|\*|\/\*)/.test(trimmed))
    return { kind: 'comment', text: trimmed.replace(/^[/* ]+/, '') };
  const strings = [...line.matchAll(LITERAL)]
    .map(([, single, double, template]) => single || double || template || '')
    .filter((text) => text.split(' ').length > MIN_SPACES);
  const comment = /(?<![:'"])\/\/\s(.*)$/.exec(line)?.[1];
  return {
    kind: strings.length > 0 ? 'string' : 'comment',
    text: [...strings, ...(comment === undefined ? [] : [comment])].join(' . '),
  };
}

/** Returns the names of the patterns in a text, one for each occurrence. */
export function findPatterns(text: string): readonly string[] {
  const judged = text.replaceAll(PERSON, ' ');
  return Object.entries(PATTERNS).flatMap(([name, pattern]) =>
    Array.from(judged.matchAll(pattern), () => name),
  );
}

export function countProse(text: string): ProseCount {
  const judged = text.replaceAll(PERSON, ' ');
  const words = judged.split(/\s+/).filter((word) => word !== '').length;
  return { words, hits: findPatterns(text).length };
}

export function addCounts(counts: readonly ProseCount[]): ProseCount {
  return {
    words: counts.reduce((sum, { words }) => sum + words, 0),
    hits: counts.reduce((sum, { hits }) => sum + hits, 0),
  };
}

/** Returns the hits per 1,000 words. */
export function rateOf({ words, hits }: ProseCount): number {
  return words === 0 ? 0 : (1000 * hits) / words;
}
