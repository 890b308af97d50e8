import { Secret } from '#shared/secret/secret.ts';

/**
 * Secrets of a running job that must not be stored: OS parameter secrets by name, and the login of
 * the personalization package.
 */
export interface JobSecrets {
  readonly osParameters: ReadonlyMap<string, Secret>;
  readonly packageUser: string | undefined;
  readonly packagePassword: Secret | undefined;
}

export const noSecrets: JobSecrets = {
  osParameters: new Map(),
  packageUser: undefined,
  packagePassword: undefined,
};

/** Returns the secrets of an opcode. */
export function takeSecrets(opcode: {
  readonly osParametersSecret: Readonly<Record<string, string | null>>;
  readonly personalizationUser?: string | undefined;
  readonly personalizationPassword?: string | undefined;
}): JobSecrets {
  const entries = Object.entries(opcode.osParametersSecret).flatMap(([name, value]) =>
    value === null ? [] : [[name, new Secret(value)] as const],
  );
  return {
    osParameters: new Map(entries),
    packageUser: opcode.personalizationUser,
    packagePassword:
      opcode.personalizationPassword === undefined
        ? undefined
        : new Secret(opcode.personalizationPassword),
  };
}
