import { type ApplianceUsers, describeUsers } from '#shared/contract/appliance-choice.ts';
import type { DoctorFinding } from '#shared/contract/api.ts';
import { BUILT_APPLIANCE } from '#shared/contract/appliance-manifest.ts';
import { type AppError, isAppError } from '#shared/errors/app-error.ts';
import type { ApplianceFiles } from '../../provision/appliance/appliance-files.ts';

const CHECK = 'appliance';
/** Whether every appliance that somebody names is here and intact. */
export async function examineAppliances(
  files: Pick<ApplianceFiles, 'verify'>,
  list: () => Promise<ReadonlyMap<string, ApplianceUsers>>,
): Promise<readonly DoctorFinding[]> {
  try {
    const named = await list();
    return await Promise.all([...named].map(([name, users]) => examineOne(files, name, users)));
  } catch (error) {
    // The store says which are named and by whom, and has a line of its own.
    if (!isAppError(error)) throw error;
    return [describe('error', error.message, error.hint)];
  }
}

async function examineOne(
  files: Pick<ApplianceFiles, 'verify'>,
  name: string,
  users: ApplianceUsers,
): Promise<DoctorFinding> {
  const isPlain = users.cluster && name === BUILT_APPLIANCE;
  const prefix = isPlain ? '' : `${name}, used by ${describeUsers(users)}: `;
  try {
    const { manifest } = await files.verify(name);
    return describe('ok', `${prefix}intact (kernel ${manifest.kernelVersion})`);
  } catch (error) {
    if (!isAppError(error)) throw error;
    return name === BUILT_APPLIANCE
      ? describeUnbuilt(prefix, error)
      : describe('error', `${prefix}${error.message}`, error.hint);
  }
}

function describeUnbuilt(prefix: string, error: AppError): DoctorFinding {
  const then = 'The first installation takes one from the build cache or builds it.';
  const hint = 'Build it ahead of time: gnt-appliance build';
  return describe('warning', `${prefix}${error.message}; ${then}`, hint);
}

function describe(
  level: DoctorFinding['level'],
  message: string,
  hint: string | undefined = undefined,
): DoctorFinding {
  return { check: CHECK, level, message, hint: hint ?? null };
}
