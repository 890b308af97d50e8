import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { AppError, systemCodeOf } from '#shared/errors/app-error.ts';

/** Debian release of the appliance. */
export const SUITE = 'bookworm';
const SUITES = [SUITE, `${SUITE}-updates`, `${SUITE}-security`];

/** A file of /etc/apt. Its name decides its format. */
export interface AptSourceFile {
  readonly name: string;
  readonly text: string;
}

/**
 * Chooses the host's own Debian mirrors for the appliance's release. Skips sources of other suites
 * or without `main`.
 * @param files `sources.list`, `*.list` and `*.sources` (sources.list(5))
 * @throws AppError HOST_PREREQUISITE when there is none, since only the operator can choose a
 * mirror
 */
export function chooseAptSources(files: readonly AptSourceFile[]): string[] {
  const lines = files.flatMap((file) =>
    file.name.endsWith('.sources') ? parseDeb822(file.text) : parseOneLine(file.text),
  );
  const chosen = SUITES.flatMap((suite) => {
    const uri = lines.find((line) => line.suite === suite && line.components.includes('main'))?.uri;
    return uri === undefined ? [] : [`deb ${uri} ${suite} main`];
  });
  if (chosen[0]?.endsWith(` ${SUITE} main`) === true) return chosen;
  throw new AppError(
    'HOST_PREREQUISITE',
    `the apt sources of this host have no mirror of Debian ${SUITE}`,
    {
      hint: 'Name one: gnt-appliance build --mirror URL',
    },
  );
}

/** Returns the archives of the appliance below an operator's mirror. */
export function sourcesOfMirror(mirror: string): string[] {
  return SUITES.slice(0, 2).map((suite) => `deb ${mirror} ${suite} main`);
}

interface SourceLine {
  readonly uri: string;
  readonly suite: string;
  readonly components: readonly string[];
}

function parseOneLine(text: string): SourceLine[] {
  return text.split('\n').flatMap((line) => {
    const [, uri, suite, components] =
      /^\s*deb\s+(?:\[[^\]]*\]\s+)?(\S+)\s+(\S+)\s+([^#]*)/.exec(line) ?? [];
    if (uri === undefined || suite === undefined) return [];
    return [{ uri, suite, components: (components ?? '').trim().split(/\s+/) }];
  });
}

function parseDeb822(text: string): SourceLine[] {
  return text
    .split('\n')
    .filter((line) => !line.startsWith('#'))
    .join('\n')
    .split(/\n\s*\n/)
    .flatMap((stanza) => {
      const field = (name: string): string[] =>
        (new RegExp(`^${name}:(.*(?:\\n[ \\t].*)*)`, 'mi').exec(stanza)?.[1] ?? '')
          .trim()
          .split(/\s+/)
          .filter(Boolean);
      if (!field('Types').includes('deb') || /^Enabled:\s*no/im.test(stanza)) return [];
      const components = field('Components');
      return field('URIs').flatMap((uri) =>
        field('Suites').map((suite) => ({ uri, suite, components })),
      );
    });
}

/** Reads the host's apt source files in apt's order. Skips missing ones. */
export function readAptSources(aptDirectory = '/etc/apt'): AptSourceFile[] {
  const parts = join(aptDirectory, 'sources.list.d');
  const names = orMissing(() => readdirSync(parts), []).sort();
  const paths = [join(aptDirectory, 'sources.list'), ...names.map((name) => join(parts, name))];
  return paths.flatMap((name) => orMissing(() => [{ name, text: readFileSync(name, 'utf8') }], []));
}

function orMissing<T>(read: () => T, otherwise: T): T {
  try {
    return read();
  } catch (error) {
    if (systemCodeOf(error) !== 'ENOENT') throw error;
    return otherwise;
  }
}
