import type { OsSettings } from '#shared/contract/api.ts';
import { MAX_TABLE_BYTES, sizeOfTexts } from '#shared/contract/bounded-texts.ts';
import type { InstanceInfo, InstanceRecord } from '#shared/contract/instance.ts';
import type { ProfileRecord } from '#shared/contract/profile.ts';
import { isHiddenFromLogs } from '#shared/contract/os-parameters.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { reveal, type Secret } from '#shared/secret/secret.ts';

/** A value is `null` where only the name of a secret is known. */
type ParameterValue =
  | { readonly visibility: 'public' | 'private'; readonly value: string }
  | { readonly visibility: 'secret'; readonly value: Secret | null };

/** One place that OS parameters come from. */
export interface ParameterLayer {
  /** Its name as `gnt-instance info` shows it: `os debian+bookworm`, `instance`. */
  readonly source: string;
  readonly values: ReadonlyMap<string, ParameterValue>;
}

export type ParameterInForce = ParameterValue & { readonly source: string };

/** What is in force for an instance, by name. */
export type OsParameters = ReadonlyMap<string, ParameterInForce>;

/**
 * The one rule of which value counts: that of the last layer that has the name, whatever its
 * visibility. Pure.
 * @param layers the lowest first
 */
export function resolveParameters(layers: readonly ParameterLayer[]): OsParameters {
  const inForce = layers.flatMap(({ source, values }) =>
    [...values].map(([name, value]) => [name, { ...value, source }] as const),
  );
  return new Map(inForce);
}

/** What an administrator set for an OS, or for one of its variants. */
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

/** What instances share that name a profile. */
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
 * What an instance has of its own.
 * @param secrets those that are known; the record has their names only
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

/** Leaves out secrets of which only the name is known, for a run that has to do without them. */
export function withoutLostSecrets(parameters: OsParameters): OsParameters {
  return new Map([...parameters].filter(([, { value }]) => value !== null));
}

/**
 * Values in clear text by name, for the one that they are meant for; a secret that is not known is
 * left out.
 */
export function revealParameters(parameters: OsParameters): Record<string, string> {
  const known = [...parameters].flatMap(([name, parameter]) => {
    const value = revealValue(parameter);
    return value === null ? [] : [[name, value] as const];
  });
  return Object.fromEntries(known);
}

/** The value in clear text; null for a secret that is not known. */
export function revealValue({ value }: ParameterValue): string | null {
  return value === null || typeof value === 'string' ? value : reveal(value);
}

/**
 * Refuses more values than a script can be started with: execve(2) would fail in the middle of the
 * job.
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

/** Values that no log may show. */
export function listHiddenValues(parameters: OsParameters): readonly string[] {
  return [...parameters.values()].flatMap((parameter) => {
    const value = isHiddenFromLogs(parameter.visibility) ? revealValue(parameter) : null;
    return value === null ? [] : [value];
  });
}

/** What an API may say of them: values of public ones only. */
export function describeParameters(
  parameters: OsParameters,
): InstanceInfo['osParametersEffective'] {
  const described = [...parameters].map(([name, { value, visibility, source }]) => {
    const isShown = visibility === 'public' && typeof value === 'string';
    return [name, { value: isShown ? value : '<redacted>', visibility, source }] as const;
  });
  return Object.fromEntries(described);
}
