import { z } from 'zod';
import type { InstanceInfo } from '#shared/contract/instance.ts';
import {
  planBackend,
  planBooting,
  planCreate,
  planDocuments,
  planInstallation,
  readPlain,
} from '#shared/contract/ganeti-create.ts';
import type { OpcodeInput } from '#shared/contract/opcode.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { ownValue } from '#shared/json/own-value.ts';
import { MIB } from '#shared/units/bytes.ts';
import { parseInput } from '../http/http-errors.ts';
import {
  createRequest,
  exportRequest,
  failoverRequest,
  growRequest,
  migrateRequest,
  modifyRequest,
  rebootRequest,
  reinstallRequest,
  removeRequest,
  renameRequest,
  shutdownRequest,
} from './instance-bodies.ts';
import { planDiskChange, planNicChange } from './instance-parts.ts';
import { RapiFailure } from './rapi-failure.ts';

/** An opcode before its own schema has checked it. */
type Draft = Readonly<Record<string, unknown>> & Pick<OpcodeInput, 'opcode'>;

/** @throws AppError VALIDATION naming fields, never values; RapiFailure */
export function parseCreate(body: unknown): Draft {
  const { __version__: dataVersion } = parseInput(
    z.looseObject({ __version__: z.unknown().optional() }),
    body,
  );
  if (dataVersion !== 1) {
    throw new RapiFailure(400, 'Instance creation request data version must be 1');
  }
  const given = parseInput(
    createRequest,
    renameKeys(body, { name: 'instance_name', os: 'os_type' }),
  );
  return planCreate(given);
}

/** Parses a reinstallation, which stops the instance first as in Ganeti's remote API. */
export function parseReinstall(name: string, body: unknown): Draft {
  const given = parseInput(reinstallRequest, renameKeys(body ?? {}, { os_type: 'os' }));
  const { 'os-image': imageParameter, ...osparams } = given.osparams ?? {};
  return {
    opcode: 'INSTANCE_REINSTALL',
    name,
    osType: given.os ?? undefined,
    forceVariant: given.force_variant,
    ...planInstallation(given),
    ...planBooting(given),
    osImage: given.os_image ?? imageParameter ?? undefined,
    osParameters: osparams,
    osParametersPrivate: given.osparams_private ?? undefined,
    osParametersSecret: given.osparams_secret ?? undefined,
    start: given.start,
    shutdownTimeoutS: given.shutdown_timeout ?? 120,
  };
}

export function parseModify(name: string, body: unknown): Draft {
  const renamed = renameKeys(body ?? {}, {
    custom_beparams: 'beparams',
    custom_hvparams: 'hvparams',
  });
  const given = parseInput(modifyRequest, renamed);
  return {
    opcode: 'INSTANCE_SET_PARAMS',
    name,
    osType: given.os_name ?? undefined,
    forceVariant: given.force_variant,
    osParameters: given.osparams ?? undefined,
    osParametersPrivate: given.osparams_private ?? undefined,
    osParametersSecret: given.osparams_secret ?? undefined,
    ...planDocuments(given),
    ...planBooting(given),
    beparams: planBackend(given.beparams),
    hvparams: given.hvparams,
    communication: given.instance_communication ?? undefined,
    disks: given.disks?.map(planDiskChange),
    nics: given.nics?.map(planNicChange),
    installParameters: given.install_parameters,
    ...readPlain('installation', given),
    personalizationPackage: given.personalization_package,
    personalizationChecksum: given.personalization_checksum,
  };
}

export function parseRemove(name: string, body: unknown): Draft {
  const given = parseInput(removeRequest, body ?? {});
  return { opcode: 'INSTANCE_REMOVE', name, shutdownTimeoutS: given.shutdown_timeout };
}

export function parseShutdown(name: string, body: unknown): Draft {
  const given = parseInput(shutdownRequest, body ?? {});
  return { opcode: 'INSTANCE_SHUTDOWN', name, timeoutS: given.timeout };
}

export function parseReboot(name: string, kind: string | null, body: unknown): Draft {
  const given = parseInput(rebootRequest, body ?? {});
  return {
    opcode: 'INSTANCE_REBOOT',
    name,
    kind: kind ?? 'hard',
    timeoutS: given.shutdown_timeout,
  };
}

export function parseRename(name: string, body: unknown): Draft {
  return { opcode: 'INSTANCE_RENAME', name, newName: parseInput(renameRequest, body).new_name };
}

export function parseMigrate(name: string, body: unknown): Draft {
  const given = parseInput(migrateRequest, body ?? {});
  return {
    opcode: 'INSTANCE_MIGRATE',
    name,
    node: given.target_node ?? undefined,
    cleanup: given.cleanup === true ? true : undefined,
  };
}

export function parseFailover(name: string, body: unknown): Draft {
  const { target_node: node } = parseInput(failoverRequest, body ?? {});
  return { opcode: 'INSTANCE_FAILOVER', name, node: node ?? undefined };
}

/** @throws AppError VALIDATION for a destination other than the instance's node */
export function parseExport(
  { name, primaryNode }: Pick<InstanceInfo, 'name' | 'primaryNode'>,
  body: unknown,
): Draft {
  const { destination, shutdown_timeout } = parseInput(
    exportRequest,
    renameKeys(body ?? {}, { target_node: 'destination' }),
  );
  if (destination !== undefined && destination !== primaryNode)
    throw new AppError('VALIDATION', `destination: '${destination}' is not the instance's node`, {
      hint: `Instances are exported on their own node: ${primaryNode}`,
    });
  return { opcode: 'BACKUP_EXPORT', name, shutdownTimeoutS: shutdown_timeout };
}

/** @param disk the number in the path */
export function parseGrow(name: string, disk: string, body: unknown): Draft {
  if (!/^\d{1,2}$/.test(disk))
    throw new RapiFailure(400, `Invalid disk identifier '${disk.slice(0, 20)}'`);
  const { amount, absolute } = parseInput(growRequest, body);
  return {
    ...{ opcode: 'INSTANCE_GROW_DISK', name, disk: Number(disk) },
    ...{ amountBytes: amount * MIB, absolute },
  };
}

/** @throws RapiFailure if both names of a parameter are given */
function renameKeys(body: unknown, names: Readonly<Record<string, string>>): unknown {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return body;
  // An object in JSON.
  const given = body as Readonly<Record<string, unknown>>;
  for (const [old, current] of Object.entries(names)) {
    if (Object.hasOwn(given, old) && Object.hasOwn(given, current))
      throw new RapiFailure(400, `'${old}' and '${current}' are the same parameter`);
  }
  return Object.fromEntries(
    Object.entries(given).map(([key, value]) => [ownValue(names, key) ?? key, value]),
  );
}
