import type { OsTrust } from '#shared/contract/api.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { OsDefinition } from './os-definition.ts';
import { refuseMistrusted } from './os-trust.ts';

export interface ScriptPolicy {
  /** Trust in the present content of the definition. */
  readonly trust: OsTrust;
  /** `gnt-cluster modify --host-scripts`. */
  readonly allowsHostScripts: boolean;
  /** The administrator set `--trusted no`; false also when the setting is absent. */
  readonly isDistrusted: boolean;
  /** `--enable-safe-install`. */
  readonly isSafeInstall: boolean;
}

/** A trusted script that runs on the host. */
export interface HostScript {
  /** Absolute path in the definition. */
  readonly path: string;
  /** Digest of the trusted content. */
  readonly digest: string;
}

export interface ChosenScripts {
  /** Path within the definition. */
  readonly appliance: string | null;
  readonly host: HostScript | null;
}

/** Returns the digest of a definition whose scripts may run on the host, else null. Pure. */
export function digestForHost({
  trust,
  allowsHostScripts,
}: Pick<ScriptPolicy, 'trust' | 'allowsHostScripts'>): string | null {
  return allowsHostScripts && trust.state === 'trusted' ? trust.digest : null;
}

/**
 * Chooses the create scripts that run: untrusted scripts in the appliance, trusted top-level
 * scripts on the host. When a definition has both, the untrusted script runs alone only after
 * `--trusted no`, because half of an installation is useless. Pure.
 * @throws AppError OS_NOT_TRUSTED, VALIDATION
 */
export function chooseCreateScripts(definition: OsDefinition, policy: ScriptPolicy): ChosenScripts {
  const appliance = definition.applianceScripts.create ?? null;
  const topLevel = definition.hostScripts.create ?? null;
  const { name } = definition;
  const { trust } = policy;
  if (appliance !== null && !policy.isSafeInstall) {
    throw new AppError('VALIDATION', `OS '${name}' has only scripts for the appliance`, {
      hint: `Let add or reinstall run them there: gnt-instance reinstall -o ${name} --enable-safe-install yes NAME`,
    });
  }
  const digest = digestForHost(policy);
  if (digest !== null) {
    return { appliance, host: topLevel === null ? null : { path: topLevel, digest } };
  }
  const isHalfMeant = policy.isDistrusted && trust.state === 'untrusted';
  if (appliance !== null && (topLevel === null || isHalfMeant)) return { appliance, host: null };
  const scripts = `the scripts of OS '${name}'`;
  const way =
    appliance === null
      ? 'give the definition an untrusted/ folder, whose scripts run in the appliance'
      : `run only its untrusted scripts: gnt-os modify --trusted no ${name}`;
  if (trust.state === 'trusted') throw forbidden(scripts, way);
  return refuseMistrusted(name, scripts, trust, way);
}

function forbidden(what: string, way: string): AppError {
  return new AppError(
    'OS_NOT_TRUSTED',
    `${what} would run on the host, which the cluster forbids`,
    { hint: `Allow it: gnt-cluster modify --host-scripts yes. Or ${way}` },
  );
}

/** Scripts that work on an installed instance, or install one from a dump. */
export type HelperScript = 'import' | 'export' | 'rename';

/** Paths as in ChosenScripts. */
export type ChosenHelper = { readonly appliance: string } | { readonly host: HostScript };

/**
 * Returns the helper script to run: the untrusted script in the appliance, else the trusted
 * top-level script on the host. Pure.
 * @returns undefined when the definition has no such script, or none that may run
 */
export function chooseHelper(
  { applianceScripts, hostScripts }: OsDefinition,
  script: HelperScript,
  policy: Pick<ScriptPolicy, 'trust' | 'allowsHostScripts'>,
): ChosenHelper | undefined {
  const appliance = applianceScripts[script];
  if (appliance !== undefined) return { appliance };
  const path = hostScripts[script];
  const digest = digestForHost(policy);
  return path === undefined || digest === null ? undefined : { host: { path, digest } };
}

/** Tells whether a definition has such a script, allowed to run or not. */
export function hasHelper(
  { applianceScripts, hostScripts }: OsDefinition,
  script: HelperScript,
): boolean {
  return (applianceScripts[script] ?? hostScripts[script]) !== undefined;
}

/**
 * Returns the helper script to run.
 * @throws AppError OS_INVALID when it is missing, OS_NOT_TRUSTED when it may not run
 */
export function requireHelper(
  definition: OsDefinition,
  script: HelperScript,
  policy: Pick<ScriptPolicy, 'trust' | 'allowsHostScripts'>,
): ChosenHelper {
  const chosen = chooseHelper(definition, script, policy);
  if (chosen !== undefined) return chosen;
  const { name } = definition;
  if (definition.hostScripts[script] === undefined) {
    throw new AppError('OS_INVALID', `OS '${name}' has no ${script} script`, {
      hint: `Put one into ${definition.path}/untrusted/; it runs in the appliance.`,
    });
  }
  const what = `the ${script} script of OS '${name}'`;
  const way = `give the definition an untrusted/${script}`;
  if (policy.trust.state === 'trusted') throw forbidden(what, way);
  return refuseMistrusted(name, what, policy.trust, way);
}
