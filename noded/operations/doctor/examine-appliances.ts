import { type ApplianceUsers, describeUsers } from '#shared/contract/appliance-choice.ts';
import type { DoctorFinding } from '#shared/contract/api.ts';
import { BUILT_APPLIANCE } from '#shared/contract/appliance-manifest.ts';
import { type AppError, isAppError } from '#shared/errors/app-error.ts';
import { listNamedAppliances } from '../../instances/record/appliance-users.ts';
import type { ApplianceFiles } from '../../provision/appliance/appliance-files.ts';
import { type Check, failure, listOwn, ok, warning } from './check.ts';

const CHECK = 'appliance';

/** Examines every appliance that a setting names. */
export const checkAppliances: Check = async (parts) => {
  const { clusters } = parts.records;
  try {
    const named = await listNamedAppliances({
      clusters,
      instances: { list: () => listOwn(parts) },
    });
    const { applianceFiles } = parts.host;
    return await Promise.all(
      [...named].map(([name, users]) => examineOne(applianceFiles, name, users)),
    );
  } catch (error) {
    // The store, which knows the names, has a finding of its own.
    if (!isAppError(error)) throw error;
    return [failure(CHECK, error.message, error.hint ?? null)];
  }
};

async function examineOne(
  files: Pick<ApplianceFiles, 'verify'>,
  name: string,
  users: ApplianceUsers,
): Promise<DoctorFinding> {
  const isPlain = users.cluster && name === BUILT_APPLIANCE;
  const prefix = isPlain ? '' : `${name}, used by ${describeUsers(users)}: `;
  try {
    const { manifest } = await files.verify(name);
    return ok(CHECK, `${prefix}intact (kernel ${manifest.kernelVersion})`);
  } catch (error) {
    if (!isAppError(error)) throw error;
    return name === BUILT_APPLIANCE
      ? describeUnbuilt(prefix, error)
      : failure(CHECK, `${prefix}${error.message}`, error.hint ?? null);
  }
}

function describeUnbuilt(prefix: string, error: AppError): DoctorFinding {
  const then = 'The first installation takes one from the build cache or builds it.';
  const hint = 'Build it ahead of time: gnt-appliance build';
  return warning(CHECK, `${prefix}${error.message}; ${then}`, hint);
}
