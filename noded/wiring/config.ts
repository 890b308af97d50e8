import { availableParallelism, hostname } from 'node:os';
import { resolve } from 'node:path';
import { z } from 'zod';
import { instanceName } from '#shared/contract/primitives.ts';
import { AppError, messageOf } from '#shared/errors/app-error.ts';
import type { LogLevel } from '#shared/log/log.ts';
import { createRootPaths, type RootPaths } from '#shared/paths/root-paths.ts';
import { GIB } from '#shared/units/bytes.ts';
import type { ListenAddress } from '#shared/socket/listen-address.ts';
import { type DataOptions, parseDataOptions } from '../cluster/peers/data-settings.ts';
import { type MachineUsers, planMachineUsers } from '../host/machine-users.ts';
import {
  type IdentityListenOptions,
  type IdentityListenSettings,
  parseIdentityOptions,
} from '../api/identity/identity-settings.ts';
import {
  parseRapiOptions,
  type RapiOptions,
  type RapiSettings,
} from '../api/rapi/rapi-settings.ts';
import {
  parseWebOptions,
  type WebListenOptions,
  type WebSettings,
} from '../api/web/web-settings.ts';

/**
 * Names of unix sockets have at most 107 bytes (unix(7)); our longest one below the root has 62.
 */
const MAX_ROOT_BYTES = 44;

export interface NodedOptions
  extends RapiOptions, IdentityListenOptions, WebListenOptions, DataOptions {
  readonly node?: string | undefined;
  readonly osSearchPath?: string | undefined;
  readonly logLevel: string;
  readonly imageCacheGib: string;
  readonly maxInstalls?: string | undefined;
  readonly installReserveMib: string;
  readonly maxStarts: string;
  readonly applianceBootTimeout: string;
  readonly sharedLease: string;
  readonly machineUids: string;
  readonly userNicsReachHost?: boolean | undefined;
}

export interface NodedConfig {
  readonly paths: RootPaths;
  readonly nodeName: string;
  readonly osSearchPath: readonly string[];
  readonly logLevel: LogLevel;
  readonly imageCacheBytes: number;
  readonly maxInstalls: number;
  /** Instances that are started in parallel after a reboot of the host. */
  readonly maxStarts: number;
  /** Memory of the node that installations must leave free. */
  readonly installReserveMiB: number;
  /** Time from power-on of an appliance to the first report of its agent. */
  readonly applianceBootTimeoutMs: number;
  /**
   * Time without contact after which other nodes may take this node's instances with shared disks.
   */
  readonly sharedLeaseMs: number;
  readonly machineUsers: MachineUsers;
  /** Guests with a user-mode NIC may reach this host and its cloud's metadata service. */
  readonly userNicsReachHost: boolean;
  /** Null for the address of this host on its way to the store. */
  readonly dataAddress: ListenAddress | null;
  /** Null if the remote API is off. */
  readonly rapi: RapiSettings | null;
  /** Null if the web page is not served permanently. */
  readonly web: WebSettings | null;
  /** Files that systemd passes (systemd.exec(5), CREDENTIALS_DIRECTORY). */
  readonly credentialsDir: string | undefined;
  /** Null if the public identity keys are not served. */
  readonly identity: IdentityListenSettings | null;
}

/** Also with one processor: an installation from a medium may wait hours for a person. */
const MIN_DEFAULT_INSTALLS = 2;

/** @throws AppError USAGE naming the option */
export function parseConfig(
  options: NodedOptions,
  root: string,
  credentialsDir?: string,
): NodedConfig {
  const absoluteRoot = resolve(root);
  if (Buffer.byteLength(absoluteRoot) > MAX_ROOT_BYTES) {
    throw new AppError('USAGE', `GNT_ROOT is too long: ${absoluteRoot}`, {
      hint: `Use a path of at most ${MAX_ROOT_BYTES} bytes. The sockets are below it.`,
    });
  }
  const paths = createRootPaths(absoluteRoot);
  const level = z.enum(['debug', 'info', 'warn', 'error']).safeParse(options.logLevel);
  if (!level.success)
    throw new AppError(
      'USAGE',
      `--log-level: '${options.logLevel}' is not one of debug, info, warn, error`,
    );
  const nodeName = (options.node ?? hostname()).toLowerCase();
  if (!instanceName.safeParse(nodeName).success) {
    throw new AppError('USAGE', `--node: '${nodeName}' is not a host name`);
  }
  const cacheGib = Number(options.imageCacheGib);
  if (!(cacheGib > 0))
    throw new AppError(
      'USAGE',
      `--image-cache-gib: '${options.imageCacheGib}' is not a size in GiB`,
    );
  return {
    paths,
    nodeName,
    osSearchPath: options.osSearchPath?.split(':').filter(Boolean) ?? paths.osSearchPath,
    logLevel: level.data,
    imageCacheBytes: cacheGib * GIB,
    maxInstalls:
      options.maxInstalls === undefined
        ? Math.max(MIN_DEFAULT_INSTALLS, availableParallelism())
        : parseCount('--max-installs', options.maxInstalls, 1),
    maxStarts: parseCount('--max-starts', options.maxStarts, 1),
    installReserveMiB: parseCount('--install-reserve-mib', options.installReserveMib, 0),
    applianceBootTimeoutMs:
      parseCount('--appliance-boot-timeout', options.applianceBootTimeout, 1) * 1000,
    sharedLeaseMs: parseCount('--shared-lease', options.sharedLease, 9) * 1000,
    machineUsers: parseMachineUsers(options.machineUids),
    userNicsReachHost: options.userNicsReachHost === true,
    dataAddress: parseDataOptions(options),
    rapi: parseRapiOptions(options, paths),
    web: parseWebOptions(options, paths),
    credentialsDir,
    identity: parseIdentityOptions(options, paths),
  };
}

function parseMachineUsers(text: string): MachineUsers {
  try {
    return planMachineUsers(/^\d{1,10}$/.test(text) ? Number(text) : NaN);
  } catch (error) {
    throw new AppError('USAGE', `--machine-uids: '${text}' is ${messageOf(error)}`, {
      cause: error,
    });
  }
}

function parseCount(option: string, text: string, minimum: number): number {
  if (/^\d{1,9}$/.test(text) && Number(text) >= minimum) return Number(text);
  throw new AppError('USAGE', `${option}: '${text}' is not a whole number of ${minimum} or more`);
}
