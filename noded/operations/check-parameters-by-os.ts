import { startDeadline } from '#shared/abort/deadline.ts';
import { AppError, isAppError } from '#shared/errors/app-error.ts';
import { createMask } from '#shared/secret/mask.ts';
import { digestForHost } from '../provision/os/choose-scripts.ts';
import type { HostCopies } from '../provision/os/host-copies.ts';
import type { ParameterOwner } from '../instances/parameters/load-parameters.ts';
import {
  listHiddenValues,
  type OsParameters,
  revealParameters,
} from '../instances/parameters/os-parameters.ts';
import { checkOsParameters, type OsSelection } from '../provision/os/os-registry.ts';
import { runHostScript, ScriptFailed } from '../provision/os/run-host-script.ts';
import {
  planCoreEnvironment,
  planOspVariables,
  refuseSharedVariables,
} from '../provision/os/script-environment.ts';
import type { OsPolicy } from './os-policy.ts';

/**
 * Seconds for `verify`, which only judges words. A hanging script must not hold the instance's
 * lock.
 */
const VERIFY_TIMEOUT_S = 60;
/**
 * Characters of its last lines in the error. They are cut after masking: a cut secret would not
 * match the mask.
 */
const MAX_OUTPUT_LENGTH = 16_384;

export interface VerifyLimits {
  readonly signal: AbortSignal;
  /** Seconds for an installation; 0 means no limit. `verify` has a minute at most. */
  readonly timeoutS: number;
}

/**
 * Checks names by `parameters.list` and by the variables they become, then values by the
 * definition's `verify`, as Ganeti does. `verify` runs on the host, so only a trusted definition's
 * script runs.
 * @param instance whose own parameters must be in the definition's list
 * @param parameters in force, as far as they are known
 * @throws AppError OS_PARAMETER with the script's last lines, private and secret values masked
 */
export async function checkParametersByOs(
  os: OsSelection,
  policy: OsPolicy,
  instance: ParameterOwner,
  parameters: OsParameters,
  hostCopies: HostCopies,
  { signal, timeoutS }: VerifyLimits,
): Promise<void> {
  const { definition } = os;
  checkParameterNames(os, instance);
  refuseSharedVariables(parameters);
  const path = definition.hostScripts.verify;
  const digest = digestForHost(policy);
  if (path === undefined || digest === null) return;
  const mask = createMask(listHiddenValues(parameters));
  const limitS = timeoutS === 0 ? VERIFY_TIMEOUT_S : Math.min(timeoutS, VERIFY_TIMEOUT_S);
  using deadline = startDeadline(
    signal,
    limitS * 1000,
    () =>
      new AppError(
        'OS_PARAMETER',
        `OS validation script failed (OS '${definition.name}' did not answer within ${limitS} s)`,
      ),
  );
  await using copy = await hostCopies.make(definition, digest);
  try {
    await runHostScript({
      path: copy.pathOf(path),
      launch: copy.launch,
      args: ['parameters'],
      cwd: copy.definition.path,
      environment: {
        ...planCoreEnvironment({ ...definition, variant: os.variant }, 0),
        ...planOspVariables(revealParameters(parameters)),
      },
      onLine: () => undefined,
      signal: deadline.signal,
    });
  } catch (error) {
    if (!isAppError(error, 'SCRIPT_FAILED')) throw error;
    const output = error instanceof ScriptFailed ? error.lastLines : [];
    // eslint-disable-next-line no-restricted-syntax -- without the cause: its last lines are not masked
    throw new AppError(
      'OS_PARAMETER',
      `OS validation script failed (${error.message})${mask(formatOutput(output)).slice(0, MAX_OUTPUT_LENGTH)}`,
      {
        details: { os: definition.name, script: path },
        hint: `Show the parameters: gnt-os info ${definition.name}`,
      },
    );
  }
}

/** @throws AppError OS_PARAMETER naming the parameters that the definition does not list */
export function checkParameterNames({ definition }: OsSelection, instance: ParameterOwner): void {
  checkOsParameters(definition, [
    ...Object.keys(instance.osParameters),
    ...Object.keys(instance.osParametersPrivate),
    ...instance.secretNames,
  ]);
}

/** Formats the last lines of a failed script as `, output: …`. */
export function formatOutput(lines: readonly string[]): string {
  return lines.length === 0 ? '' : `, output: ${lines.join('\n')}`;
}
