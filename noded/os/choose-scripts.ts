import { AppError } from '#shared/errors/app-error.ts';
import type { OsDefinition } from './os-definition.ts';

export interface ScriptPolicy {
  /** The administrator marked the definition. */
  readonly isTrusted: boolean;
  /** The cluster lets trusted scripts run on its hosts. */
  readonly allowsHostScripts: boolean;
  /** `--enable-safe-install`. */
  readonly isSafeInstall: boolean;
}

export interface ChosenScripts {
  /** Path within the definition. */
  readonly appliance: string | null;
  /** Path on the host. */
  readonly host: string | null;
}

/**
 * Which create scripts of a definition run, and where: untrusted ones in the appliance only, top-level ones on the host only,
 * and only when the administrator said so. Pure.
 * @throws AppError OS_NOT_TRUSTED, VALIDATION
 */
export function chooseCreateScripts(definition: OsDefinition, policy: ScriptPolicy): ChosenScripts {
  const appliance = definition.applianceScripts.create ?? null;
  const topLevel = definition.hostScripts.create ?? null;
  const { name } = definition;
  if (appliance !== null && !policy.isSafeInstall) {
    throw new AppError(
      'VALIDATION',
      `OS '${name}' has untrusted scripts, which need the virtualized environment`,
      {
        hint: 'leave --enable-safe-install=no out',
      },
    );
  }
  const mayRunOnHost = policy.isTrusted && policy.allowsHostScripts;
  if (mayRunOnHost || appliance !== null)
    return { appliance, host: mayRunOnHost ? topLevel : null };
  throw new AppError(
    'OS_NOT_TRUSTED',
    policy.isTrusted
      ? `the scripts of OS '${name}' would run on the host, which the cluster forbids`
      : `the scripts of OS '${name}' would run on the host, but the OS is not trusted`,
    {
      hint: policy.isTrusted
        ? 'gnt-cluster modify --host-scripts yes, or give the definition an untrusted/ folder'
        : `read them, then gnt-os modify --trusted yes ${name}; or give the definition an untrusted/ folder, whose scripts run in the appliance`,
    },
  );
}

/** A script that works on an installed instance, or that installs one from a dump. */
export type HelperScript = 'import' | 'export' | 'rename';

/** Paths as in ChosenScripts; one of the two. */
export type ChosenHelper = { readonly appliance: string } | { readonly host: string };

/**
 * Which one of a definition's helper scripts runs: the untrusted one in the appliance where there is one, else the top-level one on
 * the host when the administrator said so. Pure.
 * @returns undefined when the definition has no such script, or none that may run
 */
export function chooseHelper(
  { applianceScripts, hostScripts }: OsDefinition,
  script: HelperScript,
  { isTrusted, allowsHostScripts }: Pick<ScriptPolicy, 'isTrusted' | 'allowsHostScripts'>,
): ChosenHelper | undefined {
  const appliance = applianceScripts[script];
  if (appliance !== undefined) return { appliance };
  const host = hostScripts[script];
  return host !== undefined && isTrusted && allowsHostScripts ? { host } : undefined;
}

/** @throws AppError OS_INVALID when there is no such script, OS_NOT_TRUSTED when it may not run */
export function requireHelper(
  definition: OsDefinition,
  script: HelperScript,
  policy: Pick<ScriptPolicy, 'isTrusted' | 'allowsHostScripts'>,
): ChosenHelper {
  const chosen = chooseHelper(definition, script, policy);
  if (chosen !== undefined) return chosen;
  const { name } = definition;
  if (definition.hostScripts[script] === undefined) {
    throw new AppError('OS_INVALID', `OS '${name}' has no ${script} script`, {
      hint: `put one into ${definition.path}/untrusted/, it runs in the appliance`,
    });
  }
  throw new AppError(
    'OS_NOT_TRUSTED',
    `the ${script} script of OS '${name}' would run on the host, ${policy.isTrusted ? 'which the cluster forbids' : 'but the OS is not trusted'}`,
    {
      hint: policy.isTrusted
        ? `gnt-cluster modify --host-scripts yes, or give the definition an untrusted/${script}`
        : `read it, then gnt-os modify --trusted yes ${name}; or give the definition an untrusted/${script}`,
    },
  );
}
