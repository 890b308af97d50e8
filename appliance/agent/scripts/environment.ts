import type { OsParameters } from '../channel/host-client.ts';

const SCRIPT_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** Ganeti's name of an OS parameter in a script's environment: upper case, dashes as underscores. */
export function formatOsParameterVariable(name: string): string {
  return `OSP_${name.toUpperCase().replaceAll('-', '_')}`;
}

/** The whole environment of an OS script: the plan's, OSP_* of the parameters, and PATH; nothing of the agent's own. */
export function createScriptEnvironment(
  planned: Readonly<Record<string, string>>,
  parameters: OsParameters,
): Record<string, string> {
  const environment: Record<string, string> = { PATH: SCRIPT_PATH, ...planned };
  for (const [name, [value]] of Object.entries(parameters))
    environment[formatOsParameterVariable(name)] = value;
  return environment;
}

/** Values that must not appear in a log. */
export function listHiddenValues(parameters: OsParameters): string[] {
  return Object.values(parameters)
    .filter(([, visibility]) => visibility !== 'public')
    .map(([value]) => value);
}
