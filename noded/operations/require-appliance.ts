import type { ApplianceInForce } from '#shared/contract/appliance-choice.ts';
import { BUILT_APPLIANCE } from '#shared/contract/appliance-manifest.ts';
import { AppError, isAppError } from '#shared/errors/app-error.ts';
import type { ApplianceFiles } from '../provision/appliance/appliance-files.ts';

/**
 * An imported appliance is whole and can run on this node: who names one learns it now, and an
 * installation before anything of its instance is touched. The built one is made where it is
 * missing.
 * @throws AppError VALIDATION naming it, and who says that it is used
 */
export async function requireAppliance(
  { name, source }: ApplianceInForce,
  { applianceFiles }: { readonly applianceFiles: Pick<ApplianceFiles, 'verify'> },
): Promise<void> {
  if (name === BUILT_APPLIANCE) return;
  try {
    await applianceFiles.verify(name);
  } catch (error) {
    if (!isAppError(error)) throw error;
    const by = source === GIVEN ? '' : ` (from ${source})`;
    throw new AppError('VALIDATION', `appliance '${name}'${by} cannot be used: ${error.message}`, {
      hint: error.hint,
      details: { appliance: name, source, reason: error.code },
      cause: error,
    });
  }
}

/** The source of an appliance that the request itself names. */
export const GIVEN = 'request';
