import type { InstanceRecord } from '#shared/contract/instance.ts';
import { ownValue, setOwn } from '#shared/json/own-value.ts';

type Changes<T> = Readonly<Record<string, T | null>>;

/** Applies changes to values; `null` removes a value. Pure. */
export function mergeChanges<T>(
  values: Readonly<Record<string, T>>,
  changes: Changes<T>,
): Record<string, T> {
  const merged = { ...values };
  for (const [name, value] of Object.entries(changes)) {
    if (value === null) delete merged[name];
    else setOwn(merged, name, value);
  }
  return merged;
}

/** Applies changes to typed parameters: an absent key keeps its value, `null` removes it. Pure. */
export function mergeSettings<T extends object>(
  settings: T,
  changes: { readonly [Key in keyof T]?: T[Key] | null | undefined },
): T {
  const given = Object.entries(changes).filter(([, value]) => value !== undefined);
  const merged = Object.entries({ ...settings, ...Object.fromEntries(given) });
  // Each key is one of T's with a value of its type, since nulls are left out.
  return Object.fromEntries(merged.filter(([, value]) => value !== null)) as T;
}

/** Returns the tags after additions and removals, without duplicates. Pure. */
export function mergeTags(
  tags: readonly string[],
  changes: {
    readonly addTags?: readonly string[] | undefined;
    readonly removeTags?: readonly string[] | undefined;
  },
): string[] {
  const { addTags = [], removeTags = [] } = changes;
  return [...new Set([...tags, ...addTags])].filter((tag) => !removeTags.includes(tag));
}

type OsParameters = Pick<InstanceRecord, 'osParameters' | 'osParametersPrivate' | 'secretNames'>;

/**
 * Applies changes to an instance's OS parameters. A parameter set in one visibility is removed from
 * the others. Pure.
 */
export function mergeOsParameters(
  current: OsParameters,
  changes: {
    readonly osParameters: Changes<string>;
    readonly osParametersPrivate: Changes<string>;
    readonly osParametersSecret: Changes<string>;
  },
): OsParameters {
  const given = {
    public: givenNames(changes.osParameters),
    private: givenNames(changes.osParametersPrivate),
    secret: givenNames(changes.osParametersSecret),
  };
  const goneSecrets = new Set([
    ...given.public,
    ...given.private,
    ...Object.keys(changes.osParametersSecret),
  ]);
  return {
    osParameters: mergeChanges(
      without(current.osParameters, [...given.private, ...given.secret]),
      changes.osParameters,
    ),
    osParametersPrivate: mergeChanges(
      without(current.osParametersPrivate, [...given.public, ...given.secret]),
      changes.osParametersPrivate,
    ),
    secretNames: [
      ...current.secretNames.filter((name) => !goneSecrets.has(name)),
      ...given.secret,
    ].sort(),
  };
}

/**
 * Applies changes to OS parameters that several instances share; these are never secret. A
 * parameter set in one visibility is removed from the other. Pure.
 */
export function mergeSharedParameters(
  current: Pick<OsParameters, 'osParameters' | 'osParametersPrivate'>,
  changes: {
    readonly osParameters: Changes<string>;
    readonly osParametersPrivate: Changes<string>;
  },
): Pick<OsParameters, 'osParameters' | 'osParametersPrivate'> {
  const { osParameters, osParametersPrivate } = mergeOsParameters(
    { ...current, secretNames: [] },
    { ...changes, osParametersSecret: {} },
  );
  return { osParameters, osParametersPrivate };
}

function givenNames(changes: Changes<string>): readonly string[] {
  return Object.keys(changes).filter((name) => ownValue(changes, name) !== null);
}

function without(values: Record<string, string>, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(Object.entries(values).filter(([name]) => !names.includes(name)));
}
