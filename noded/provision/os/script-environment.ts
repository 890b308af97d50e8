import { ospVariable } from '#shared/contract/os-parameters.ts';
import { type CORE_VARIABLES, planDumpVariables } from '#shared/contract/script-environment.ts';
import { AppError, assertNever } from '#shared/errors/app-error.ts';
import { setOwn } from '#shared/json/own-value.ts';
import { MIB } from '#shared/units/bytes.ts';

export interface ScriptDisk {
  /** `/dev/disk/by-id/virtio-disk0` in the appliance; the file or the loop device on the host. */
  readonly path: string;
  readonly sizeBytes: number;
  readonly uuid: string;
  readonly name: string | null;
  readonly access: 'rw' | 'ro';
  /** `block`, or `file:<driver>`. */
  readonly backend: string;
}

export interface ScriptNic {
  readonly mac: string;
  readonly uuid: string;
  readonly name: string | null;
  readonly ip: string | null;
  readonly mode: string;
  readonly link: string | null;
}

export type ScriptOperation =
  | { readonly script: 'create'; readonly reinstall: boolean }
  | { readonly script: 'import' | 'export'; readonly diskIndex: number }
  | { readonly script: 'rename'; readonly oldName: string };

/** Everything that the variables of a script need, except OSP_*. */
export interface ScriptEnvironmentInput {
  readonly instance: {
    readonly name: string;
    readonly uuid: string;
    readonly createdAtMs: number;
    readonly modifiedAtMs: number;
    readonly primaryNode: string;
    /** `name+variant`, as the user wrote it. */
    readonly osType: string;
    readonly hypervisor: string;
    readonly beparams: Readonly<Record<string, string | number | boolean>>;
    readonly hvparams: Readonly<Record<string, string | number | boolean>>;
  };
  readonly os: {
    readonly name: string;
    readonly apiVersion: number;
    readonly variants: readonly string[];
    readonly variant: string | null;
  };
  readonly disks: readonly ScriptDisk[];
  readonly nics: readonly ScriptNic[];
  readonly debugLevel: 0 | 1;
  /** `appliance` adds OS_SCRIPT, as Ganeti's helper VM does. */
  readonly runsIn: 'appliance' | 'host';
  readonly operation: ScriptOperation;
}

/** Ganeti's HOOKS_PATH. */
export const SCRIPT_PATH = '/sbin:/bin:/usr/sbin:/usr/bin';

/**
 * Returns the variables of `verify` without OSP_*. It judges the parameters before the instance
 * exists (backend.py OSCoreEnv).
 */
export function planCoreEnvironment(
  os: ScriptEnvironmentInput['os'],
  debugLevel: 0 | 1,
): Record<(typeof CORE_VARIABLES)[number] | 'PATH', string> {
  return {
    PATH: SCRIPT_PATH,
    OS_API_VERSION: String(os.apiVersion),
    OS_NAME: os.name,
    // As in Ganeti, a definition without a list of variants has none, even with `--force-variant`.
    OS_VARIANT: os.apiVersion >= 15 && os.variants[0] ? (os.variant ?? os.variants[0]) : '',
    DEBUG_LEVEL: String(debugLevel),
  };
}

/**
 * Returns exactly Ganeti's variables, with PATH and without OSP_* (ganeti-os-interface(7);
 * backend.py OSEnvironment). Empty values are omitted where Ganeti omits them.
 */
export function planScriptEnvironment(input: ScriptEnvironmentInput): Record<string, string> {
  const { instance } = input;
  return {
    ...planCoreEnvironment(input.os, input.debugLevel),
    INSTANCE_NAME: instance.name,
    INSTANCE_OS: instance.osType,
    INSTANCE_UUID: instance.uuid,
    INSTANCE_CTIME: formatSeconds(instance.createdAtMs),
    INSTANCE_MTIME: formatSeconds(instance.modifiedAtMs),
    INSTANCE_PRIMARY_NODE: instance.primaryNode,
    INSTANCE_SECONDARY_NODES: '',
    HYPERVISOR: instance.hypervisor,
    DISK_COUNT: String(input.disks.length),
    NIC_COUNT: String(input.nics.length),
    ...numbered('DISK', input.disks.map(diskVariables)),
    ...numbered('NIC', input.nics.map(nicVariables)),
    ...prefixed('INSTANCE_BE_', instance.beparams),
    ...prefixed('INSTANCE_HV_', instance.hvparams),
    ...(input.runsIn === 'appliance' && { OS_SCRIPT: helperScriptName(input.operation) }),
    ...operationVariables(input),
  };
}

/** Returns the variables OSP_<NAME>, one for each parameter. */
export function planOspVariables(
  parameters: Readonly<Record<string, string>>,
): Record<string, string> {
  return Object.fromEntries(
    Object.entries(parameters).map(([name, value]) => [ospVariable(name), value]),
  );
}

/**
 * Refuses two parameters that give the same variable: its value would depend on their order.
 * @param parameters in force, by name
 * @throws AppError OS_PARAMETER naming both, never their values
 */
export function refuseSharedVariables(
  parameters: ReadonlyMap<string, { readonly source: string }>,
): void {
  const names = new Map<string, string>();
  for (const [name, { source }] of parameters) {
    const variable = ospVariable(name);
    const other = names.get(variable);
    const shown = `'${name}' (of ${source})`;
    if (other !== undefined)
      throw new AppError(
        'OS_PARAMETER',
        `the OS parameters ${other} and ${shown} become the same script variable, ${variable}`,
        { hint: 'Remove one of them (-O -NAME), or rename it.' },
      );
    names.set(variable, shown);
  }
}

type Values = Readonly<Record<string, string | number | boolean | null>>;

function diskVariables(disk: ScriptDisk): Values {
  return {
    PATH: disk.path,
    ACCESS: disk.access,
    SIZE: Math.floor(disk.sizeBytes / MIB),
    UUID: disk.uuid,
    NAME: disk.name,
    FRONTEND_TYPE: 'paravirtual',
    BACKEND_TYPE: disk.backend,
  };
}

function nicVariables(nic: ScriptNic): Values {
  return {
    MAC: nic.mac,
    UUID: nic.uuid,
    NAME: nic.name,
    IP: nic.ip,
    MODE: nic.mode,
    BRIDGE: nic.mode === 'bridged' ? nic.link : null,
    LINK: nic.link,
    FRONTEND_TYPE: 'paravirtual',
  };
}

function numbered(prefix: string, items: readonly Values[]): Record<string, string> {
  return Object.fromEntries(
    items.flatMap((item, n) => Object.entries(prefixed(`${prefix}_${n}_`, item))),
  );
}

/** Omits null and empty values. Prints booleans as Python does. */
function prefixed(prefix: string, values: Values): Record<string, string> {
  const variables: Record<string, string> = {};
  for (const [key, value] of Object.entries(values)) {
    if (value === null || value === '') continue;
    const text = typeof value === 'boolean' ? (value ? 'True' : 'False') : String(value);
    setOwn(variables, prefix + key, text);
  }
  return variables;
}

function helperScriptName(operation: ScriptOperation): string {
  return operation.script === 'create' ? 'create_untrusted' : operation.script;
}

function operationVariables({ operation, disks }: ScriptEnvironmentInput): Record<string, string> {
  switch (operation.script) {
    case 'create':
      return operation.reinstall ? { INSTANCE_REINSTALL: '1' } : {};
    case 'rename':
      return { OLD_INSTANCE_NAME: operation.oldName };
    case 'import':
    case 'export': {
      const { script, diskIndex } = operation;
      return planDumpVariables(script, diskIndex, disks[diskIndex]?.path ?? '');
    }
    default:
      return assertNever(operation);
  }
}

/** Prints seconds since the epoch with a fraction, as Python prints a float. */
function formatSeconds(ms: number): string {
  return Number.isInteger(ms / 1000) ? `${ms / 1000}.0` : String(ms / 1000);
}
