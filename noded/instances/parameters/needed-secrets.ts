import type { NeededSecrets } from '#shared/contract/error-details.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { AppError } from '#shared/errors/app-error.ts';

interface Login {
  readonly personalizationUser?: string | undefined;
  readonly personalizationPassword?: string | undefined;
}

interface GivenSecrets extends Login {
  readonly osParametersSecret: Readonly<Record<string, string | null>>;
}

/** Returns true if the package is fetched with a login. */
export function givesLogin({ personalizationUser, personalizationPassword }: Login): boolean {
  return personalizationUser !== undefined || personalizationPassword !== undefined;
}

/** Returns the missing half of the package's login: either half is useless alone. */
export function missingLogin(
  isNeeded: boolean,
  login: Login,
): Pick<NeededSecrets, 'packageUser' | 'packagePassword'> {
  const asks = isNeeded || givesLogin(login);
  return {
    packageUser: asks && login.personalizationUser === undefined,
    packagePassword: asks && login.personalizationPassword === undefined,
  };
}

/** Returns the secrets that an installation needs and that the request lacks. Pure. */
export function missingSecrets(
  instance: Pick<InstanceRecord, 'secretNames' | 'packageNeedsPassword'>,
  given: GivenSecrets,
): NeededSecrets {
  const { osParametersSecret } = given;
  return {
    osParameters: instance.secretNames.filter((name) => !Object.hasOwn(osParametersSecret, name)),
    ...missingLogin(instance.packageNeedsPassword, given),
  };
}

/**
 * @param what clause of the message that announces the names
 * @throws AppError SECRETS_NEEDED if any secret is missing
 */
export function refuseMissingSecrets(what: string, missing: NeededSecrets): void {
  const { osParameters, packageUser, packagePassword } = missing;
  const names = [
    ...osParameters,
    ...(packageUser ? ['personalization-user'] : []),
    ...(packagePassword ? ['personalization-password'] : []),
  ];
  if (names.length === 0) return;
  const ways = [
    ...(osParameters.length > 0 ? ['--os-parameters-secret NAME=@FILE'] : []),
    ...(packageUser ? ['--personalization-user USER'] : []),
    ...(packagePassword ? ['--personalization-password @FILE'] : []),
  ];
  throw new AppError('SECRETS_NEEDED', `${what}: ${names.join(', ')}`, {
    details: { names, ...missing },
    hint: `Give ${names.length === 1 ? 'it' : 'them'} with ${ways.join(' and ')}`,
  });
}
