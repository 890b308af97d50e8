import { isHiddenFromLogs, ospVariable } from '#shared/contract/os-parameters.ts';
import type { InstallPlan } from '#shared/contract/plan.ts';
import { SERVICE_URL } from '#shared/contract/service-address.ts';
import { setOwn } from '#shared/json/own-value.ts';
import { SYSTEM_PATH } from '#shared/process/system-path.ts';
import type { OsParameters } from '../channel/host-client.ts';

/** Returns GNT_MIRROR_<NAME>: the host's URL of each allowed package mirror. */
export function planMirrorVariables({ mirrors = [] }: InstallPlan): Record<string, string> {
  return Object.fromEntries(
    mirrors.map((name) => [
      `GNT_MIRROR_${name.toUpperCase().replaceAll('-', '_')}`,
      `${SERVICE_URL}/ganeti/latest/mirror/${name}`,
    ]),
  );
}

/**
 * Returns the whole environment of an OS script: the plan's, OSP_* of the parameters, and PATH; not
 * the agent's own.
 */
export function createScriptEnvironment(
  planned: Readonly<Record<string, string>>,
  parameters: OsParameters,
): Record<string, string> {
  const environment: Record<string, string> = { PATH: SYSTEM_PATH, ...planned };
  for (const [name, [value]] of Object.entries(parameters))
    setOwn(environment, ospVariable(name), value);
  return environment;
}

export function listHiddenValues(parameters: OsParameters): string[] {
  return Object.values(parameters)
    .filter(([, visibility]) => isHiddenFromLogs(visibility))
    .map(([value]) => value);
}
