import { dirname } from 'node:path';
import type { Contents } from '../content-keys.ts';
import { addCounts, countProse, findPatterns, type ProseCount, proseOf, rateOf } from './prose.ts';

/** Hits per 1,000 words, for each place and for all documents and strings together. */
const LIMIT = 1.0;
/** Allowed hits for a place with few words. */
const FREE_HITS = 1;

/** A place: a document by its path, strings or comments by the folder of their file. */
export type Places = ReadonlyMap<string, ProseCount>;

export interface ProseTally {
  readonly documents: Places;
  readonly strings: Places;
  readonly comments: Places;
}

/** Folders whose strings users see. */
const PROGRAMS = /^(?:metad|noded|appliance|cluster-cli|shared|scripts)\//;
const CODE = /\.(?:ts|sh)$/;
/** The folder of this check contains the patterns. */
const NOT_PROSE = /^(?:fixtures\/|test\/check\/words\/)/;

export function isJudged(path: string): boolean {
  return !NOT_PROSE.test(path) && (path.endsWith('.md') || CODE.test(path));
}

/** Counts documents, strings and comments of a checkout. */
export function tallyProse(contents: Contents): ProseTally {
  const tally = {
    documents: new Map<string, ProseCount>(),
    strings: new Map<string, ProseCount>(),
    comments: new Map<string, ProseCount>(),
  };
  for (const [path, text] of contents) {
    if (!isJudged(path)) continue;
    for (const line of text.split('\n')) {
      const { kind, text: prose } = proseOf(path, line);
      const count = countProse(prose);
      if (count.words === 0) continue;
      const places = tally[`${kind}s`];
      const place = kind === 'document' ? path : folderOf(path);
      places.set(place, addCounts([places.get(place) ?? { words: 0, hits: 0 }, count]));
    }
  }
  return tally;
}

/** Returns `noded/netboot`; `noded` for a file at its top. */
export function folderOf(path: string): string {
  return dirname(path).split('/').slice(0, 2).join('/');
}

/** Returns the strings that users see, without names of tests. */
export function userStrings(strings: Places): Places {
  return new Map([...strings].filter(([place]) => PROGRAMS.test(`${place}/`)));
}

/** Reports when places that pass individually have too many hits together. */
export function judgeTotal(places: readonly Places[]): readonly string[] {
  const total = addCounts(places.flatMap((counts) => [...counts.values()]));
  return rateOf(total) > LIMIT ? [`documents and strings have ${describe(total)}`] : [];
}

/** Reports places above the limit. */
export function judgePlaces(kind: string, places: Places): readonly string[] {
  return [...places].flatMap(([place, count]) =>
    count.hits > FREE_HITS && rateOf(count) > LIMIT
      ? [`${place}: ${kind} have ${describe(count)}`]
      : [],
  );
}

function describe(count: ProseCount): string {
  const rate = rateOf(count).toFixed(1);
  return `${count.hits} banned patterns in ${count.words} words, ${rate} per 1,000`;
}

/** Lists the patterns as `PATH:LINE [PATTERN] TEXT`. */
export function listHits(contents: Contents, kind: string, place: string): readonly string[] {
  return [...contents].flatMap(([path, text]) => {
    if (!isJudged(path) || (path !== place && folderOf(path) !== place)) return [];
    return text.split('\n').flatMap((line, index) => {
      const prose = proseOf(path, line);
      if (`${prose.kind}s` !== kind) return [];
      return findPatterns(prose.text).map(
        (name) => `${path}:${index + 1} [${name}] ${prose.text.trim().slice(0, 100)}`,
      );
    });
  });
}
