import type { OsSettings } from '#shared/contract/api.ts';
import { MAX_TABLE_BYTES, sizeOfTexts } from '#shared/contract/bounded-texts.ts';
import type { InstanceInfo, InstanceRecord } from '#shared/contract/instance.ts';
import type { ProfileRecord } from '#shared/contract/profile.ts';
import { isHiddenFromLogs } from '#shared/contract/os-parameters.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { reveal, type Secret } from '#shared/secret/secret.ts';

/** A value is `null` if only the name of a secret is known. */
type ParameterValue =
  | { readonly visibility: 'public' | 'private'; readonly value: string }
  | { readonly visibility: 'secret'; readonly value: Secret | null };

export interface ParameterLayer {
  /** Its name as `gnt-instance info` shows it: `os debian+bookworm`, `instance`. */
  readonly source: string;
  readonly values: ReadonlyMap<string, ParameterValue>;
}

export type ParameterInForce = ParameterValue & { readonly source: string };

/** The parameters in force for an instance, by name. */
export type OsParameters = ReadonlyMap<string, ParameterInForce>;

/**
 * Returns the parameters in force. The last layer that has a name decides its value, whatever its
 * visibility. Pure.
 * @param layers the lowest first
 */
export function resolveParameters(layers: readonly ParameterLayer[]): OsParameters {
  const inForce = layers.flatMap(({ source, values }) =>
    [...values].map(([name, value]) => [name, { ...value, source }] as const),
  );
  return new Map(inForce);
}

/** Returns the parameters that an administrator set for an OS or a variant. */
export function osLayer({
  name,
  osParameters,
  osParametersPrivate,
}: Pick<OsSettings, 'name' | 'osParameters' | 'osParametersPrivate'>): ParameterLayer {
  return {
    source: `os ${name}`,
    values: new Map([...shown(osParameters, 'public'), ...shown(osParametersPrivate, 'private')]),
  };
}

/** Returns the parameters of a profile, which several instances may share. */
export function profileLayer({
  name,
  osParameters,
  osParametersPrivate,
}: Pick<ProfileRecord, 'name' | 'osParameters' | 'osParametersPrivate'>): ParameterLayer {
  return {
    source: `profile ${name}`,
    values: new Map([...shown(osParameters, 'public'), ...shown(osParametersPrivate, 'private')]),
  };
}

/**
 * Returns the parameters of the instance itself.
 * @param secrets the known values; the record has only the names
 */
export function instanceLayer(
  instance: Pick<InstanceRecord, 'osParameters' | 'osParametersPrivate' | 'secretNames'>,
  secrets: ReadonlyMap<string, Secret>,
): ParameterLayer {
  const { osParameters, osParametersPrivate, secretNames } = instance;
  const secret = (name: string, value: Secret | null): readonly [string, ParameterValue] => [
    name,
    { visibility: 'secret', value },
  ];
  return {
    source: 'instance',
    values: new Map([
      ...shown(osParameters, 'public'),
      ...shown(osParametersPrivate, 'private'),
      ...secretNames.map((name) => secret(name, null)),
      ...[...secrets].map(([name, value]) => secret(name, value)),
    ]),
  };
}

function shown(
  values: Readonly<Record<string, string>>,
  visibility: 'public' | 'private',
): (readonly [string, ParameterValue])[] {
  return Object.entries(values).map(([name, value]) => [name, { visibility, value }]);
}

/** Leaves out secrets with unknown values, for a run that must do without them. */
export function withoutLostSecrets(parameters: OsParameters): OsParameters {
  return new Map([...parameters].filter(([, { value }]) => value !== null));
}

/**
 * Returns values in clear text by name, for the guest they belong to. Leaves out secrets with
 * unknown values.
 */
export function revealParameters(parameters: OsParameters): Record<string, string> {
  const known = [...parameters].flatMap(([name, parameter]) => {
    const value = revealValue(parameter);
    return value === null ? [] : [[name, value] as const];
  });
  return Object.fromEntries(known);
}

/** Returns the value in clear text; null for a secret with an unknown value. */
export function revealValue({ value }: ParameterValue): string | null {
  return value === null || typeof value === 'string' ? value : reveal(value);
}

/**
 * Refuses values that exceed the size of a script's environment: execve(2) would fail in the middle
 * of the job.
 * @throws AppError OS_PARAMETER that names sizes, never values
 */
export function refuseTooLarge(parameters: OsParameters): void {
  const bytes = sizeOfTexts(revealParameters(parameters));
  if (bytes <= MAX_TABLE_BYTES) return;
  throw new AppError(
    'OS_PARAMETER',
    `the OS parameters in force have ${bytes} bytes of names and values, more than ${MAX_TABLE_BYTES}`,
    {
      details: { bytes, maxBytes: MAX_TABLE_BYTES },
      hint: 'gnt-instance info shows where each comes from; give large content as user data',
    },
  );
}

/** Returns the values that no log may show. */
export function listHiddenValues(parameters: OsParameters): readonly string[] {
  return [...parameters.values()].flatMap((parameter) => {
    const value = isHiddenFromLogs(parameter.visibility) ? revealValue(parameter) : null;
    return value === null ? [] : [value];
  });
}

/** Returns the parameters as an API may show them: only public values. */
export function describeParameters(
  parameters: OsParameters,
): InstanceInfo['osParametersEffective'] {
  const described = [...parameters].map(([name, { value, visibility, source }]) => {
    const isShown = visibility === 'public' && typeof value === 'string';
    return [name, { value: isShown ? value : '<redacted>', visibility, source }] as const;
  });
  return Object.fromEntries(described);
}
