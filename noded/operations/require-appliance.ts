import type { ApplianceInForce } from '#shared/contract/appliance-choice.ts';
import { BUILT_APPLIANCE } from '#shared/contract/appliance-manifest.ts';
import { AppError, isAppError } from '#shared/errors/app-error.ts';
import type { ApplianceFiles } from '../provision/appliance/appliance-files.ts';

/**
 * Checks that an imported appliance is intact and can run on this node. A command that names one
 * fails early, and an installation fails before it touches its instance. The built-in one is built
 * when it is missing.
 * @throws AppError VALIDATION naming the appliance and the setting that selects it
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
