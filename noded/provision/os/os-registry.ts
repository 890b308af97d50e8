import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError, systemCodeOf } from '#shared/errors/app-error.ts';
import { DefinitionProblem, loadDefinition } from './load-definition.ts';
import type { OsDefinition } from './os-definition.ts';
import { isOsName, isVariantName, parseOsName } from './os-name.ts';

/** A definition in the search path, valid or not. */
export interface OsDiagnosis {
  readonly name: string;
  readonly path: string;
  readonly definition: OsDefinition | null;
  /** Why the definition is invalid, in Ganeti's words. */
  readonly problem: string | null;
  /** Folders of the same name later in the search path. */
  readonly shadowed: readonly string[];
}

export interface OsSelection {
  readonly definition: OsDefinition;
  /** Null when the definition has no variants. */
  readonly variant: string | null;
}

export interface OsRegistryOptions {
  /** The first folder that has a name wins. */
  readonly searchPath: readonly string[];
}

/** Finds the OS definitions of this node. */
export function createOsRegistry({ searchPath }: OsRegistryOptions) {
  /** Reads a definition by name without variant. Undefined when its folder does not exist. */
  const diagnose = async (name: string): Promise<OsDiagnosis | undefined> => {
    const paths = isOsName(name) ? await findDirectories(searchPath, name) : [];
    const [path, ...shadowed] = paths;
    return path === undefined ? undefined : { name, path, shadowed, ...(await tryLoad(path)) };
  };
  return {
    diagnose,
    /** Reads all definitions, ordered by name. */
    async list(): Promise<readonly OsDiagnosis[]> {
      const names = new Set<string>();
      for (const directory of searchPath) {
        for (const name of await listNames(directory)) names.add(name);
      }
      const found = await Promise.all([...names].sort().map(diagnose));
      return found.filter((diagnosis) => diagnosis !== undefined);
    },
    /**
     * Returns a valid definition.
     * @param nameWithVariant `debootstrap+bookworm`
     * @throws AppError OS_NOT_FOUND, OS_INVALID, OS_VARIANT
     */
    async find(
      nameWithVariant: string,
      options: {
        /** Accepts a variant that the definition does not list (`--force-variant`). */
        readonly forceVariant?: boolean;
      } = {},
    ): Promise<OsSelection> {
      const { name, variant } = parseOsName(nameWithVariant);
      const diagnosis = await diagnose(name);
      if (!diagnosis) throw notFound(name, searchPath);
      if (!diagnosis.definition) {
        throw new AppError('OS_INVALID', diagnosis.problem ?? `OS '${name}' is not valid`, {
          details: { os: name, path: diagnosis.path },
          hint: `Correct it, then check it: gnt-os diagnose`,
        });
      }
      if (options.forceVariant === true) checkVariantName(variant);
      else checkVariant(diagnosis.definition, variant);
      return { definition: diagnosis.definition, variant };
    },
  };
}

export type OsRegistry = ReturnType<typeof createOsRegistry>;

/**
 * Checks that the definition lists all parameters.
 * @throws AppError OS_PARAMETER in Ganeti's words
 */
export function checkOsParameters(definition: OsDefinition, names: Iterable<string>): void {
  // Definitions before API 20 have no list of parameters, and so accept none.
  const known = new Set(definition.parameters.map(({ name }) => name));
  const unknown = [...names].filter((name) => !known.has(name)).sort();
  if (unknown.length === 0) return;
  throw new AppError(
    'OS_PARAMETER',
    `The following parameters are not supported by the OS ${definition.name}: ${unknown.join(', ')}`,
    {
      details: { os: definition.name, unknown, known: [...known] },
      hint:
        known.size === 0
          ? 'It supports none.'
          : `It supports ${[...known].join(', ')} (see gnt-os info ${definition.name}).`,
    },
  );
}

function checkVariant(definition: OsDefinition, variant: string | null): void {
  const { name, variants } = definition;
  const refuse = (message: string): AppError =>
    new AppError('OS_VARIANT', message, {
      details: { os: name, variant, variants },
      hint:
        variants.length === 0
          ? `Use -o ${name}`
          : `Use one of ${variants.map((known) => `${name}+${known}`).join(', ')}, or give --force-variant.`,
    });
  if (variants.length === 0) {
    if (variant === null) return;
    throw refuse(`OS '${name}' does not support variants ('${variant}' passed)`);
  }
  if (variant === null || variant === '') throw refuse(`OS name '${name}' must include a variant`);
  if (!variants.includes(variant)) {
    throw refuse(`OS '${name}' does not support variant '${variant}'`);
  }
}

/** Refuses an invalid variant name, because definitions build paths from it. */
function checkVariantName(variant: string | null): void {
  if (variant === null || isVariantName(variant)) return;
  throw new AppError('OS_VARIANT', `'${variant}' is not a variant name`, {
    hint: 'A variant name consists of letters, digits and . + - _',
  });
}

function notFound(name: string, searchPath: readonly string[]): AppError {
  return new AppError('OS_NOT_FOUND', `Directory for OS ${name} not found in search path`, {
    details: { os: name, searchPath },
    hint: `Install its definition below one of ${searchPath.join(', ')}. List them: gnt-os list`,
  });
}

async function tryLoad(path: string): Promise<Pick<OsDiagnosis, 'definition' | 'problem'>> {
  try {
    return { definition: await loadDefinition(path), problem: null };
  } catch (error) {
    if (error instanceof DefinitionProblem) return { definition: null, problem: error.message };
    throw error;
  }
}

async function findDirectories(searchPath: readonly string[], name: string): Promise<string[]> {
  const candidates = searchPath.map((directory) => join(directory, name));
  const found = await Promise.all(candidates.map(isDirectory));
  return candidates.filter((_, index) => found[index]);
}

async function isDirectory(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch (error) {
    if (isAbsence(error)) return false;
    throw error;
  }
}

async function listNames(directory: string): Promise<readonly string[]> {
  try {
    return (await readdir(directory)).filter(isOsName);
  } catch (error) {
    if (isAbsence(error)) return [];
    throw error;
  }
}

function isAbsence(error: unknown): boolean {
  return ['ENOENT', 'ENOTDIR', 'ELOOP'].includes(systemCodeOf(error) ?? '');
}
