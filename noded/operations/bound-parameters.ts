import { ownValue } from '#shared/json/own-value.ts';
import { availableParallelism, totalmem } from 'node:os';
import type { BeParameters, HvParameters } from '#shared/contract/machine-parameters.ts';
import type { Opcode } from '#shared/contract/opcode.ts';
import { DEFAULT_LIMITS } from '#shared/contract/view.ts';
import { MIB } from '#shared/units/bytes.ts';
import { NEW_CONNECTIONS_PER_SECOND } from '../net/channel/nft-rules.ts';

type Parameters = HvParameters & BeParameters;
type Formers = Partial<Pick<Parameters, keyof Parameters>>;

/** `free`: values are bounded by the schema, and paths and URLs by the cluster's settings. */
type Rule = 'free' | { readonly atMost: () => number };

/**
 * Which parameters users set who are bound to instances, and up to which value. What an instance
 * takes of the metadata service or of the node is missing for its neighbours, so an unbound user
 * alone raises these.
 */
const RULES: { readonly [Key in keyof Required<Parameters>]: Rule } = {
  accel: 'free',
  boot_order: 'free',
  cdrom_image_path: 'free',
  kernel_path: 'free',
  initrd_path: 'free',
  kernel_args: 'free',
  firmware: 'free',
  metadata_hop_limit: 'free',
  metadata_request_rate: { atMost: () => DEFAULT_LIMITS.requestsPerSecond },
  metadata_request_burst: { atMost: () => DEFAULT_LIMITS.burst },
  metadata_connections: { atMost: () => DEFAULT_LIMITS.connections },
  metadata_connection_rate: { atMost: () => NEW_CONNECTIONS_PER_SECOND },
  boot_report: 'free',
  decommission_timeout: 'free',
  systemd_credentials: 'free',
  memoryMiB: { atMost: () => Math.floor(totalmem() / MIB) },
  vcpus: { atMost: () => availableParallelism() },
};

export interface Excess {
  readonly key: string;
  readonly value: number;
  readonly most: number;
}

/**
 * Finds a parameter above the bound for users who are bound to instances. A value that an unbound
 * user gave to the instance is a bound, too.
 * @param former parameters of the instance; empty for a new one
 */
export function findExcess(opcode: Opcode, former: Formers): Excess | undefined {
  const asked: Readonly<Record<string, unknown>> = opcode;
  const given = ['hvparams', 'installParameters', 'beparams'].flatMap((field) =>
    Object.entries(ownValue(asked, field) ?? {}),
  );
  return given
    .map(([key, value]) => ({ key, value: Number(value), most: boundOf(key, former) }))
    .find(({ value, most }) => value > most);
}

function boundOf(key: string, former: Formers): number {
  const rule = Object.entries(RULES).find(([name]) => name === key)?.[1] ?? 'free';
  if (rule === 'free') return Infinity;
  const own = Object.entries(former).find(([name]) => name === key)?.[1];
  return Math.max(rule.atMost(), Number(own ?? 0));
}
