import { createHash } from 'node:crypto';
import { posix } from 'node:path';
import typescript from 'typescript';

/** Texts of files by path relative to the checkout. */
export type Contents = ReadonlyMap<string, string>;

/**
 * Returns a key for each file, from its path, its text and the basis.
 * @param basis versions and settings of the tool
 */
export function keysOfFiles(contents: Contents, basis: string): ReadonlyMap<string, string> {
  return new Map([...contents].map(([path, text]) => [path, digest(`${basis}\n${path}\n${text}`)]));
}

/**
 * Returns a key for each file, from the file and all its direct and indirect imports: any of them
 * may change the types in the file. Imported packages belong to the basis.
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
  // Iteration of a set includes elements that are added during the loop.
  for (const each of reached) for (const to of imports.get(each) ?? []) reached.add(to);
  return reached;
}

/** @returns paths of files that may exist */
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
