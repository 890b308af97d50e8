import { posix } from 'node:path';
import type { Contents } from '../content-keys.ts';
import { proseLines } from './markdown.ts';

const INLINE_LINK = /\]\(([^()\s]+(?:\([^()\s]*\)[^()\s]*)?)(?:\s+"[^"]*")?\)/g;
const LINK_DEFINITION = /^\s{0,3}\[[^\]]+\]:\s*(\S+)/;

/** Finds links of Markdown documents to files or headings that do not exist. */
export function findDeadLinks(contents: Contents): readonly string[] {
  const files = new Set(contents.keys());
  const folders = new Set([...files].flatMap(foldersOf));
  return [...contents].flatMap(([path, text]) => {
    if (!path.endsWith('.md') || path.startsWith('fixtures/')) return [];
    return proseLines(text).flatMap(({ number, text: line }) =>
      targetsOf(line)
        .filter((target) => isDead(path, target, { contents, files, folders }))
        .map((target) => `${path}:${number}: the link ${target} leads nowhere`),
    );
  });
}

interface World {
  readonly contents: Contents;
  readonly files: ReadonlySet<string>;
  readonly folders: ReadonlySet<string>;
}

function isDead(from: string, target: string, { contents, files, folders }: World): boolean {
  if (/^[a-z][a-z0-9+.-]*:/i.test(target)) return false;
  const [path = '', anchor] = target.split('#');
  const to = path === '' ? from : posix.join(posix.dirname(from), decodeURI(path));
  if (anchor === undefined) return !files.has(to) && !folders.has(to.replace(/\/$/, ''));
  const text = contents.get(to);
  return text === undefined || !anchorsOf(text).has(anchor);
}

function targetsOf(line: string): readonly string[] {
  const withoutCode = line.replaceAll(/`[^`]*`/g, '');
  const definition = LINK_DEFINITION.exec(withoutCode)?.[1];
  return [
    ...[...withoutCode.matchAll(INLINE_LINK)].map(([, target = '']) => target),
    ...(definition === undefined ? [] : [definition]),
  ];
}

/** Returns the anchors that GitHub gives to the headings of a document. */
export function anchorsOf(text: string): ReadonlySet<string> {
  const seen = new Map<string, number>();
  const anchors = new Set<string>();
  for (const { text: line } of proseLines(text)) {
    const explicit = /<a (?:id|name)="([^"]+)"/.exec(line)?.[1];
    if (explicit !== undefined) anchors.add(explicit);
    const title = /^#{1,6}\s+(.*?)\s*#*$/.exec(line)?.[1];
    if (title === undefined) continue;
    const slug = slugOf(title);
    const before = seen.get(slug) ?? 0;
    seen.set(slug, before + 1);
    anchors.add(before === 0 ? slug : `${slug}-${before}`);
  }
  return anchors;
}

function slugOf(title: string): string {
  return title
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\p{M}_ -]/gu, '')
    .replaceAll(' ', '-');
}

function foldersOf(path: string): readonly string[] {
  const parts = path.split('/').slice(0, -1);
  return parts.map((_, index) => parts.slice(0, index + 1).join('/'));
}
