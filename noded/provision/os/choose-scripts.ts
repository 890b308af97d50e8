import type { OsTrust } from '#shared/contract/api.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { OsDefinition } from './os-definition.ts';
import { refuseMistrusted } from './os-trust.ts';

export interface ScriptPolicy {
  /** The administrator's trust in the definition as it is now. */
  readonly trust: OsTrust;
  /** The cluster lets trusted scripts run on its hosts. */
  readonly allowsHostScripts: boolean;
  /** The administrator said that it is not trusted, rather than nothing. */
  readonly isDistrusted: boolean;
  /** `--enable-safe-install`. */
  readonly isSafeInstall: boolean;
}

/** A trusted script that runs on the host. */
export interface HostScript {
  /** Its path on the host, in the definition. */
  readonly path: string;
  /** The digest of the definition as it is trusted. */
  readonly digest: string;
}

export interface ChosenScripts {
  /** Path within the definition. */
  readonly appliance: string | null;
  readonly host: HostScript | null;
}

/**
 * The digest of a definition whose scripts may run on the host; null when they may not. Pure.
 */
export function digestForHost({
  trust,
  allowsHostScripts,
}: Pick<ScriptPolicy, 'trust' | 'allowsHostScripts'>): string | null {
  return allowsHostScripts && trust.state === 'trusted' ? trust.digest : null;
}

/**
 * Chooses which create scripts of a definition run, and where: untrusted ones in the appliance,
 * top-level ones on the host when the administrator trusts them. Of a definition that has both, the
 * untrusted half runs alone only when the administrator said so: half of an installation is none.
 * Pure.
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

/** A script that works on an installed instance, or that installs one from a dump. */
export type HelperScript = 'import' | 'export' | 'rename';

/** The one script that runs, with paths as in ChosenScripts. */
export type ChosenHelper = { readonly appliance: string } | { readonly host: HostScript };

/**
 * Which one of a definition's helper scripts runs: the untrusted one in the appliance where there
 * is one, else the top-level one on the host when the administrator said so. Pure.
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

/** Whether a definition has such a script at all, one that may run or not. */
export function hasHelper(
  { applianceScripts, hostScripts }: OsDefinition,
  script: HelperScript,
): boolean {
  return (applianceScripts[script] ?? hostScripts[script]) !== undefined;
}

/** @throws AppError OS_INVALID when there is no such script, OS_NOT_TRUSTED when it may not run */
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
