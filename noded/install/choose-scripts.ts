import { AppError } from '#shared/errors/app-error.ts';
import type { OsDefinition } from '../os/os-definition.ts';

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
