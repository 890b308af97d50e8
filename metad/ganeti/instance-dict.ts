import { createHash } from 'node:crypto';
import { Secret } from '#shared/secret/secret.ts';
import type { Visibility } from '#shared/contract/primitives.ts';
import type { ViewNic } from '#shared/contract/view.ts';
import { ownValue } from '#shared/json/own-value.ts';
import type { ServedParameter, ServedView } from '../view/served-view.ts';
import { LuxiRefusal } from './luxi-requests.ts';

type Dict = Readonly<Record<string, unknown>>;

/** In seconds. ECMAScript has no later date. */
const MAX_TIME_S = 8.64e12;

/** Ganeti's `Instance.ToDict()` and `osparams_secret`, checked. */
export interface GanetiInstance {
  readonly uuid: string;
  readonly name: string;
  readonly os: string;
  readonly hypervisor: string;
  readonly primaryNode: string;
  readonly beparams: ServedView['beparams'];
  readonly nics: readonly ViewNic[];
  /**
   * Addresses of the communication NICs, that of the current name first; none when communication is
   * off.
   */
  readonly communicationIps: readonly string[];
  readonly disks: readonly string[];
  readonly tags: readonly string[];
  readonly createdAtMs: number;
  readonly parameters: ReadonlyMap<string, ServedParameter>;
  /** Ganeti sends secrets with `add` and `reinstall` only. */
  readonly hasSecrets: boolean;
  /** `gnt-instance reinstall` alone sends `osparams_public`. */
  readonly isReinstall: boolean;
}

const COMMUNICATION_PREFIX = 'ganeti:communication:';
const IPV4 = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/;

/**
 * Parses Ganeti's instance. Unknown keys are ignored, `osparams_public` above all: in a reinstall
 * it holds the secrets.
 * @throws LuxiRefusal with Ganeti's texts where they exist; they name fields and never values
 */
export function parseGanetiInstance(value: unknown): GanetiInstance {
  const dict = dictOf(value, 'Expecting a dictionary');
  const { name } = dict;
  if (name === undefined) throw refusal('Could not find instance name');
  if (typeof name !== 'string') throw refusal('Name is not a string');
  const nics = nicsOf(dict);
  return {
    uuid: typeof dict.uuid === 'string' ? dict.uuid : uuidFromName(name),
    name,
    os: optionalString(dict, 'os'),
    hypervisor: optionalString(dict, 'hypervisor'),
    primaryNode: optionalString(dict, 'primary_node'),
    beparams: scalarsOf(optionalDict(dict, 'beparams')),
    nics: nics.map(viewNicOf),
    communicationIps: communicationIps(nics, name),
    disks: stringsOf(dict.disks),
    tags: stringsOf(dict.tags),
    createdAtMs:
      typeof dict.ctime === 'number' && dict.ctime > 0 && dict.ctime <= MAX_TIME_S
        ? dict.ctime * 1000
        : 0,
    parameters: new Map([
      ...parametersOf(dict, 'osparams', 'public'),
      ...parametersOf(dict, 'osparams_private', 'private'),
      ...parametersOf(dict, 'osparams_secret', 'secret'),
    ]),
    hasSecrets: Object.keys(optionalDict(dict, 'osparams_secret')).length > 0,
    isReinstall: Object.hasOwn(dict, 'osparams_public'),
  };
}

function refusal(text: string): LuxiRefusal {
  return new LuxiRefusal(`Could not get instance parameters: ${text}`);
}

function dictOf(value: unknown, text: string): Dict {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw refusal(text);
  // JSON has no other objects.
  return value as Dict;
}

function optionalDict(dict: Dict, key: string): Dict {
  const value = ownValue(dict, key);
  return value === undefined || value === null
    ? {}
    : dictOf(value, `Instance ${key} is not a dictionary`);
}

function optionalString(dict: Dict, key: string): string {
  const value = ownValue(dict, key);
  if (value === undefined || value === null) return '';
  if (typeof value !== 'string') throw refusal(`Instance ${key} is not a string`);
  return value;
}

function stringsOf(value: unknown): string[] {
  if (!Array.isArray(value)) return [];
  return value.filter((item): item is string => typeof item === 'string');
}

function scalarsOf(dict: Dict): ServedView['beparams'] {
  const entries = Object.entries(dict).flatMap(([key, value]) =>
    typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
      ? ([[key, value]] as const)
      : [],
  );
  return Object.fromEntries(entries);
}

function nicsOf(dict: Dict): Dict[] {
  // Ganeti's own words, its mistake included.
  if (dict.nics === undefined) throw refusal("Could not find OS parameters key 'nics'");
  if (!Array.isArray(dict.nics)) throw refusal('Instance nics is not an array');
  return dict.nics.map((nic) =>
    dictOf(nic, 'Found wrong data in instance NICs: expected a dictionary'),
  );
}

function isCommunication(nic: Dict): boolean {
  return typeof nic.name === 'string' && nic.name.startsWith(COMMUNICATION_PREFIX);
}

/**
 * After a rename an instance may have two communication NICs, with the old and the new name. Both
 * reach their guest.
 */
function communicationIps(nics: readonly Dict[], instanceName: string): string[] {
  const named = nics.filter(isCommunication).map((nic) => {
    if (nic.ip === undefined || nic.ip === null) {
      throw refusal('Could not find instance communication IP');
    }
    if (typeof nic.ip !== 'string') throw refusal('Instance communication IP is not a string');
    if (!isIpv4(nic.ip)) throw refusal('Instance communication IP is not an IPv4 address');
    return { ip: nic.ip, isCurrent: nic.name === COMMUNICATION_PREFIX + instanceName };
  });
  return named.sort((a, b) => Number(b.isCurrent) - Number(a.isCurrent)).map(({ ip }) => ip);
}

function isIpv4(text: string): boolean {
  const match = IPV4.exec(text);
  return match !== null && match.slice(1).every((part) => Number(part) <= 255);
}

function viewNicOf(nic: Dict): ViewNic {
  const parameters = optionalDict(nic, 'nicparams');
  const text = (from: Dict, key: string): string | undefined => {
    const value = ownValue(from, key);
    return typeof value === 'string' ? value : undefined;
  };
  const fields = {
    uuid: text(nic, 'uuid'),
    name: text(nic, 'name'),
    ip: text(nic, 'ip'),
    mode: text(parameters, 'mode'),
    link: text(parameters, 'link'),
  };
  const known = Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined),
  );
  return {
    mac: (text(nic, 'mac') ?? '').toLowerCase(),
    communication: isCommunication(nic),
    ...known,
  };
}

function parametersOf(
  dict: Dict,
  key: string,
  visibility: Visibility,
): [string, ServedParameter][] {
  return Object.entries(optionalDict(dict, key)).map(([name, value]) => {
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    return [name, { value: new Secret(text), visibility }];
  });
}

function uuidFromName(name: string): string {
  const hex = createHash('sha256').update(name).digest('hex');
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12}).*$/, '$1-$2-$3-$4-$5');
}
