import { createHash } from 'node:crypto';
import { posix } from 'node:path';
import typescript from 'typescript';

/** Paths relative to the checkout, and what is in these files. */
export type Contents = ReadonlyMap<string, string>;

/**
 * A key for each file, of its path, of what is in it, and of what a tool goes by.
 * @param basis versions and settings
 */
export function keysOfFiles(contents: Contents, basis: string): ReadonlyMap<string, string> {
  return new Map([...contents].map(([path, text]) => [path, digest(`${basis}\n${path}\n${text}`)]));
}

/**
 * A key for each file, of itself and of all that it imports, directly or not: what is told of its
 * types may change when any of these does. What is imported from packages belongs to the basis.
 */
export function keysOfClosures(contents: Contents, basis: string): ReadonlyMap<string, string> {
  const own = keysOfFiles(contents, basis);
  const imports = new Map(
    [...contents].map(([path, text]) => [path, importsOf(path, text).filter((to) => own.has(to))]),
  );
  return new Map(
    [...contents.keys()].map((path) => {
      const keys = [...reach(path, imports)].sort().map((each) => own.get(each) ?? '');
      return [path, digest([own.get(path) ?? '', ...keys].join('\n'))];
    }),
  );
}

function reach(path: string, imports: ReadonlyMap<string, readonly string[]>): ReadonlySet<string> {
  const reached = new Set([path]);
  // A set goes on with what is added to it meanwhile.
  for (const each of reached) for (const to of imports.get(each) ?? []) reached.add(to);
  return reached;
}

/** @returns paths of files that may be there */
function importsOf(path: string, text: string): readonly string[] {
  return typescript
    .preProcessFile(text, true, true)
    .importedFiles.flatMap(({ fileName }) =>
      fileName.startsWith('#')
        ? [fileName.slice(1)]
        : fileName.startsWith('.')
          ? [posix.join(posix.dirname(path), fileName)]
          : [],
    );
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 32);
}
