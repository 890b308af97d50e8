import { constants, type Stats } from 'node:fs';
import { lstat, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { messageOf, systemCodeOf } from '#shared/errors/app-error.ts';
import { osParameterName } from '#shared/contract/primitives.ts';
import { readBounded } from '#shared/files/read-bounded.ts';
import type { OsDefinition, OsParameterDescription, OsScriptName } from './os-definition.ts';
import { isVariantName } from './os-name.ts';

/** Newest first, as Ganeti prints them. */
const SUPPORTED_API_VERSIONS: readonly number[] = [20, 15, 10];
const API_FILE = 'ganeti_api_version';
const VARIANTS_FILE = 'variants.list';
const PARAMETERS_FILE = 'parameters.list';
const UNTRUSTED_DIRECTORY = 'untrusted';
/** The only untrusted script of Ganeti 3, in the same folder as the trusted ones. */
const CREATE_UNTRUSTED = 'create_untrusted';
const MAX_LIST_FILE_BYTES = 256 * 1024;
const MAX_LIST_ENTRIES = 4096;
const scriptNames: readonly OsScriptName[] = ['create', 'export', 'import', 'rename', 'verify'];

type Scripts = Partial<Record<OsScriptName, string>>;

/** Thrown for an invalid definition, with Ganeti's message. */
export class DefinitionProblem extends Error {}

/**
 * Reads the definition in a directory (ganeti-os-interface(7); Ganeti's _TryOSFromDisk). Host
 * scripts are optional when the definition has scripts for the appliance.
 * @throws DefinitionProblem
 */
export async function loadDefinition(path: string): Promise<OsDefinition> {
  const apiVersions = await readApiVersions(path);
  const apiVersion = SUPPORTED_API_VERSIONS.find((version) => apiVersions.includes(version));
  if (apiVersion === undefined) {
    throw new DefinitionProblem(
      `API version mismatch for path '${path}': found ${apiVersions.join(', ')}, want ${SUPPORTED_API_VERSIONS.join(', ')}.`,
    );
  }
  const applianceScripts = await findApplianceScripts(path, apiVersion);
  const hostScripts = await findHostScripts(path, apiVersion, applianceScripts);
  return {
    name: basename(path),
    path,
    apiVersions,
    apiVersion,
    variants: apiVersion >= 15 ? await readVariants(path) : [],
    parameters: apiVersion >= 20 ? await readParameters(path) : [],
    hostScripts,
    applianceScripts,
  };
}

async function readApiVersions(path: string): Promise<readonly number[]> {
  const lines = (await readList(path, API_FILE, 'API version')).filter((line) => line !== '');
  const versions = lines.map((line) => (/^\d{1,4}$/.test(line) ? Number(line) : Number.NaN));
  if (versions.length === 0 || versions.some(Number.isNaN)) {
    throw new DefinitionProblem(
      `API version(s) can't be converted to integer: '${lines.join(' ').slice(0, 100)}' in '${join(path, API_FILE)}'`,
    );
  }
  return versions;
}

async function findApplianceScripts(path: string, apiVersion: number): Promise<Scripts> {
  const found: Scripts = {};
  for (const name of scriptNamesOf(apiVersion)) {
    const inFolder = `${UNTRUSTED_DIRECTORY}/${name}`;
    if (await checkScript(path, inFolder)) found[name] = inFolder;
  }
  if (!found.create && (await checkScript(path, CREATE_UNTRUSTED))) found.create = CREATE_UNTRUSTED;
  return found;
}

async function findHostScripts(
  path: string,
  apiVersion: number,
  applianceScripts: Scripts,
): Promise<Scripts> {
  const found: Scripts = {};
  const missing: string[] = [];
  for (const name of scriptNamesOf(apiVersion)) {
    if (await checkScript(path, name)) found[name] = join(path, name);
    else if (name !== 'create') missing.push(name);
  }
  if (!found.create && !applianceScripts.create) {
    throw new DefinitionProblem(
      `A create script (trusted or untrusted) under path '${path}' must exist`,
    );
  }
  const first = missing[0];
  if (first !== undefined && !applianceScripts.create) throw missingFile(first, path, 'ENOENT');
  return found;
}

function scriptNamesOf(apiVersion: number): readonly OsScriptName[] {
  return apiVersion >= 20 ? scriptNames : scriptNames.filter((name) => name !== 'verify');
}

/**
 * Returns true when the script exists.
 * @throws DefinitionProblem when it is not an executable file
 */
async function checkScript(path: string, name: string): Promise<boolean> {
  const found = await statFile(path, name);
  if (!found) return false;
  if (!found.isFile()) throw notRegular(name, path);
  if ((found.mode & constants.S_IXUSR) === 0) {
    throw new DefinitionProblem(`File '${name}' under path '${path}' is not executable`);
  }
  return true;
}

async function statFile(path: string, name: string): Promise<Stats | undefined> {
  const file = join(path, name);
  try {
    return await stat(file);
  } catch (error) {
    const code = systemCodeOf(error) ?? messageOf(error);
    const isAbsent = code === 'ENOENT' && !(await isLink(file));
    if (isAbsent || code === 'ENOTDIR') return undefined;
    throw missingFile(name, path, code, error);
  }
}

/** Distinguishes a dangling link, which is an error, from a missing file. */
async function isLink(file: string): Promise<boolean> {
  try {
    return (await lstat(file)).isSymbolicLink();
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return false;
    throw error;
  }
}

async function readVariants(path: string): Promise<readonly string[]> {
  if (!(await statFile(path, VARIANTS_FILE))) return [];
  const lines = await readList(path, VARIANTS_FILE, 'OS variants');
  const variants = lines.filter((line) => line !== '' && !line.startsWith('#'));
  const bad = variants.find((variant) => !isVariantName(variant));
  if (bad !== undefined) {
    throw new DefinitionProblem(
      `File '${VARIANTS_FILE}' under path '${path}' has a bad variant name '${bad.slice(0, 100)}'`,
    );
  }
  return variants;
}

async function readParameters(path: string): Promise<readonly OsParameterDescription[]> {
  const lines = await readList(path, PARAMETERS_FILE, 'OS parameters');
  return lines
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const end = line.search(/\s/);
      const name = end === -1 ? line : line.slice(0, end);
      const description = line.slice(name.length).trimStart();
      if (!osParameterName.safeParse(name).success) {
        throw new DefinitionProblem(
          `File '${PARAMETERS_FILE}' under path '${path}' has a bad parameter name '${name.slice(0, 100)}'`,
        );
      }
      return { name, description };
    });
}

/** Returns the trimmed lines of a required text file. */
async function readList(path: string, name: string, what: string): Promise<readonly string[]> {
  const found = await statFile(path, name);
  if (!found) throw missingFile(name, path, 'ENOENT');
  if (!found.isFile()) throw notRegular(name, path);
  const file = join(path, name);
  let text: string;
  try {
    text = (await readBounded(file, MAX_LIST_FILE_BYTES)).toString('utf8');
  } catch (error) {
    throw new DefinitionProblem(
      `Error while reading the ${what} file at ${file}: ${messageOf(error)}`,
      { cause: error },
    );
  }
  const lines = text.split(/\r?\n/).map((line) => line.trim());
  if (lines.length > MAX_LIST_ENTRIES) {
    throw new DefinitionProblem(`File '${name}' under path '${path}' has too many lines`);
  }
  return lines;
}

function missingFile(name: string, path: string, code: string, cause?: unknown): DefinitionProblem {
  return new DefinitionProblem(`File '${name}' under path '${path}' is missing (${code})`, {
    cause,
  });
}

function notRegular(name: string, path: string): DefinitionProblem {
  return new DefinitionProblem(`File '${name}' under path '${path}' is not a regular file`);
}
