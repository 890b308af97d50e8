import { fromHere } from '../../values/host-path.ts';
import type { z } from 'zod';
import type { DiskTemplate } from '#shared/contract/disk-template.ts';
import type { diskSpec, nicSpec } from '#shared/contract/machine-parameters.ts';
import type { instanceCreate, instanceModify } from '#shared/contract/opcode.ts';
import { readNicNetwork } from '#shared/contract/static-network.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { ownValue, setOwn } from '#shared/json/own-value.ts';
import type { Context } from '../../terminal/context.ts';
import { arrangeByIndex, parseIdentified, parseIndex } from '../../values/identified.ts';
import { type KeyValue, parseList } from '../../values/key-values.ts';
import {
  type ParameterChanges,
  readParameters,
  refuseSharedNames,
} from '../../values/os-parameters.ts';
import { parseSizeBytes, parseSizeMiB } from '../../values/size.ts';
import type { ValueSource } from '../../values/value-source.ts';
import {
  autostartKeys,
  backendKeys,
  diskKeys,
  type HypervisorKey,
  hypervisorKeys,
  type HypervisorParameter,
  hypervisorParameters,
  nicKeys,
  optionOf,
  type PlainKey,
  plainKeysOf,
  type PlainPlace,
  plainSettings,
  type ValueType,
} from '#shared/contract/parameter-keys.ts';
import { DEFAULT_AUTOSTART } from '#shared/contract/autostart.ts';
import { NONE } from './parse-documents.ts';

export interface OsParameterOptions {
  readonly osParameters?: readonly string[];
  readonly osParametersPrivate?: readonly string[];
  readonly osParametersSecret?: readonly string[];
}

export interface OsParameters {
  readonly public: ParameterChanges;
  readonly private: ParameterChanges;
  readonly secret: ParameterChanges;
}

/**
 * Reads the parameters of all visibilities. Warns of secrets on the command line.
 * @throws AppError as readParameters, DUPLICATE_OS_PARAMETER
 */
export function readOsParameters(context: Context, options: OsParameterOptions): OsParameters {
  const read = (option: string, texts: readonly string[] | undefined) =>
    readParameters({ option, texts: texts ?? [] }, context.values);
  const shown = read('--os-parameters', options.osParameters);
  const kept = read('--os-parameters-private', options.osParametersPrivate);
  const secret = read('--os-parameters-secret', options.osParametersSecret);
  if (secret.flagCount > 0) {
    // The element is not shown: it may be a secret whose name was forgotten.
    throw new AppError('USAGE', 'option --os-parameters-secret: an element has no value', {
      hint: 'Write NAME=@FILE, or NAME=@- for stdin',
    });
  }
  for (const name of secret.typedKeys) {
    context.warn(
      `other users can see the secret ${name} on the command line: use ${name}=@FILE or ${name}=@-`,
    );
  }
  const parameters = { public: shown.values, private: kept.values, secret: secret.values };
  refuseSharedNames(parameters);
  return parameters;
}

/**
 * Reads a list of `key=value` with known keys.
 * @throws AppError USAGE
 */
export function readKnown(
  option: string,
  pairs: readonly KeyValue[],
  known: readonly string[],
  source: ValueSource,
): ReadonlyMap<string, string | null> {
  const values = new Map<string, string | null>();
  for (const { key, value } of pairs) {
    if (!known.includes(key)) {
      throw new AppError('USAGE', `option ${option}: unknown parameter '${key}'`, {
        hint: `Keys: ${known.join(', ')}`,
        details: { option, key },
      });
    }
    switch (value.kind) {
      case 'text':
        values.set(key, value.text === NONE ? null : value.text);
        break;
      case 'unset':
        values.set(key, null);
        break;
      case 'file':
        values.set(key, source.readText(`${option} ${key}`, value.path));
        break;
      case 'flag':
        throw new AppError('USAGE', `Missing value for key '${key}' in option ${option}`, {
          hint: `Write ${key}=VALUE`,
        });
    }
  }
  return values;
}

const AUTOSTART_KEYS = Object.keys(autostartKeys).filter((key) => key !== 'yes' && key !== 'no');
const DISK_KEYS = Object.keys(diskKeys);
/** maxmem and minmem are Ganeti's. */
const BE_KEYS = [...Object.keys(backendKeys), 'maxmem', 'minmem'];

type ModifyInput = z.input<typeof instanceModify>;
/** `null` unsets the value. */
type BeChanges = NonNullable<ModifyInput['beparams']>;
type HvChanges = NonNullable<ModifyInput['hvparams']>;

/**
 * Parses `memory=1G,vcpus=2`. Accepts Ganeti's maxmem and minmem if they are equal to memory.
 * @throws AppError USAGE
 */
export function parseBackendParameters(texts: readonly string[], source: ValueSource): BeChanges {
  const option = '-B';
  const pairs = texts.flatMap((text) => parseIdentified(option, `:${text}`).values);
  const values = readKnown(option, pairs, BE_KEYS, source);
  const sizes = (['memory', 'maxmem', 'minmem'] as const).flatMap((key) => {
    const text = values.get(key);
    if (text === undefined) return [];
    return [text === null ? null : parseSizeMiB(`${option} ${key}`, text)];
  });
  if (new Set(sizes).size > 1) {
    throw new AppError('USAGE', 'option -B: memory, maxmem and minmem differ', {
      hint: 'The memory of an instance is fixed: write -B memory=SIZE',
    });
  }
  const [memoryMiB] = sizes;
  const vcpus = values.get('vcpus');
  return {
    memoryMiB,
    ...(vcpus !== undefined && {
      vcpus: vcpus === null ? null : parseCount(`${option} vcpus`, vcpus),
    }),
  };
}

const HV_KEYS = Object.keys(hypervisorKeys);

/**
 * Parses `kvm:accel=tcg,…`. The name of the hypervisor is optional, as in Ganeti's modify. `none`
 * unsets all installation parameters.
 * @throws AppError USAGE, VALIDATION
 */
export function parseHypervisorParameters(
  option: string,
  texts: readonly string[],
  source: ValueSource,
): HvChanges {
  if (option === '--install-parameters' && texts.length === 1 && texts[0] === NONE)
    return Object.fromEntries(HV_KEYS.map((key) => [key, null]));
  const pairs = texts.flatMap((text) => {
    const match = /^([a-z][a-z-]*)(?::|$)(.*)$/s.exec(text);
    if (!match) return parseIdentified(option, `:${text}`).values;
    if (match[1] !== 'kvm') {
      throw new AppError('VALIDATION', `option ${option}: unknown hypervisor '${match[1]}'`, {
        hint: `Write ${option} kvm:key=value,…`,
      });
    }
    return parseIdentified(option, `:${match[2] ?? ''}`).values;
  });
  const duplicate = pairs.find(({ key }, at) => pairs.findIndex((each) => each.key === key) < at);
  if (duplicate) {
    throw new AppError('USAGE', `Duplicate key '${duplicate.key}' in option ${option}`);
  }
  const parsed: Record<string, string | number | null> = {};
  for (const [key, text] of readKnown(option, pairs, HV_KEYS, source)) {
    // readKnown accepts only keys of the table.
    const { type }: HypervisorParameter = hypervisorParameters[key as HypervisorKey];
    if (text === null) setOwn(parsed, key, null);
    else if ('least' in type) setOwn(parsed, key, parseCount(`${option} ${key}`, text));
    else setOwn(parsed, key, 'isFile' in type ? fromHere(text) : text);
  }
  // The keys are known. The opcode's schema checks values such as accel's.
  return parsed;
}

type AutostartInput = NonNullable<z.input<typeof instanceModify>['autostart']>;

/**
 * Parses `yes`, `no`, `priority=10,delay=30,restarts=5,lost_secrets=wait`.
 * @throws AppError USAGE
 */
export function parseAutostart(
  texts: readonly string[] | undefined,
  source: ValueSource,
): AutostartInput | undefined {
  if (texts === undefined) return undefined;
  const option = '--autostart';
  const words = texts.flatMap((text) => text.split(','));
  const [last] = words.filter((word) => word === 'yes' || word === 'no').slice(-1);
  const rest = words.filter((word) => word !== 'yes' && word !== 'no').join(',');
  const pairs = rest === '' ? [] : parseIdentified(option, `:${rest}`).values;
  const values = readKnown(option, pairs, AUTOSTART_KEYS, source);
  const count = (key: string, usual: number): number | undefined => {
    const text = values.get(key);
    if (text === undefined) return undefined;
    return text === null ? usual : parseCount(`${option} ${key}`, text);
  };
  const lostSecrets = values.get('lost_secrets');
  return {
    boot: last === undefined ? undefined : last === 'yes',
    priority: count('priority', DEFAULT_AUTOSTART.priority),
    delayS: count('delay', DEFAULT_AUTOSTART.delayS),
    restarts: count('restarts', DEFAULT_AUTOSTART.restarts),
    // The schema of the opcode checks the word.
    lostSecrets: (lostSecrets === null
      ? DEFAULT_AUTOSTART.lostSecrets
      : lostSecrets) as AutostartInput['lostSecrets'],
  };
}

export type DiskInput = z.input<typeof diskSpec>;
type NicInput = z.input<typeof nicSpec>;

export interface DiskOptions {
  readonly diskTemplate?: DiskTemplate;
  readonly osSize?: string;
  readonly disk?: readonly string[];
}

/**
 * Parses `-s SIZE` or `--disk N:size=SIZE,name=NAME`.
 * @throws AppError USAGE, in Ganeti's words if it has the error
 */
export function parseDisks(options: DiskOptions, source: ValueSource): readonly DiskInput[] {
  const given = options.disk ?? [];
  if (options.diskTemplate === 'diskless' && (given.length > 0 || options.osSize !== undefined)) {
    throw new AppError('USAGE', 'Diskless instance but disk information passed', {
      hint: 'Omit --disk and --os-size, or the template diskless',
    });
  }
  if (options.osSize !== undefined) {
    if (given.length > 0) {
      throw new AppError('USAGE', "Please use either the '--disk' or '-s' option");
    }
    return [{ sizeBytes: parseSizeBytes('--os-size', options.osSize) }];
  }
  return arrangeByIndex(
    '--disk',
    given.map((text) => parseDisk(text, source)),
  );
}

function parseDisk(text: string, source: ValueSource): { ident: string; item: DiskInput } {
  const { ident, values } = parseIdentified('--disk', text);
  parseIndex('--disk', ident);
  return { ident, item: composeDisk(ident, values, source) };
}

/** @throws AppError USAGE */
export function composeDisk(
  ident: string,
  values: readonly KeyValue[],
  source: ValueSource,
): DiskInput {
  const option = `--disk ${ident}`;
  const known = readKnown(option, values, [...DISK_KEYS, 'mode'], source);
  const size = known.get('size');
  if (typeof size !== 'string') {
    throw new AppError('USAGE', `Missing size for disk ${ident}`, {
      hint: `Write --disk ${ident}:size=10G`,
    });
  }
  if (known.get('mode') === 'ro') {
    throw new AppError('NOT_SUPPORTED', `${option}: read-only disks are not supported`);
  }
  const name = known.get('name');
  return {
    sizeBytes: parseSizeBytes(`${option} size`, size),
    ...(typeof name === 'string' && { name }),
  };
}

/**
 * Parses `--net N:…`. An omitted index is a NIC with defaults, as in Ganeti.
 * @throws AppError USAGE
 */
export function parseNics(texts: readonly string[], source: ValueSource): readonly NicInput[] {
  const given = texts.map((text) => {
    const { ident, values } = parseIdentified('--net', text);
    return { ident, item: composeNic(readKnown(`--net ${ident}`, values, NIC_KEYS, source)) };
  });
  return arrangeByIndex('--net', given, {});
}

export const NETWORK_KEYS = ['ip', 'gateway', 'dns', 'search', 'routes', 'mtu'] as const;

/** bridge is Ganeti's. */
export const NIC_KEYS: readonly string[] = [...Object.keys(nicKeys), 'bridge'];

/** Keys with another name in the opcode. */
export const RENAMED_NIC_KEYS: Readonly<Record<string, string>> = {
  bridge: 'link',
  network: 'networkName',
};

export function composeNic(known: ReadonlyMap<string, string | null>): NicInput {
  const nic: Record<string, string> = {};
  const network: Partial<Record<(typeof NETWORK_KEYS)[number], string>> = {};
  for (const [key, value] of known) {
    if (value === null || value === 'none') continue;
    const networkKey = NETWORK_KEYS.find((name) => name === key);
    if (networkKey !== undefined) network[networkKey] = value;
    else if (key === 'mac') nic['mac'] = value === 'generate' ? 'auto' : value.toLowerCase();
    else setOwn(nic, ownValue(RENAMED_NIC_KEYS, key) ?? key, value);
  }
  // The opcode's schema checks the values.
  return { ...nic, ...readNicNetwork(network) };
}

/** Options of the table's settings, as commander returns them: a list is one text. */
export type PlainOptions<Place extends PlainPlace> = {
  readonly [Key in PlainKey<Place>]?: Create[Key] extends readonly string[] | undefined
    ? string
    : NonNullable<Create[Key]>;
};
type Create = z.input<typeof instanceCreate>;

/**
 * Returns the settings of a place for an opcode.
 * @throws AppError USAGE
 */
export function readPlain<Place extends PlainPlace>(
  place: Place,
  options: PlainOptions<Place>,
): Pick<Create, PlainKey<Place>> {
  const entries = plainKeysOf(place).map((key) => {
    const { type }: { readonly type: ValueType } = plainSettings[key];
    const given = options[key];
    const isList = 'list' in type && typeof given === 'string';
    return [key, isList ? parseWords(key, given, type.list) : given];
  });
  // fromEntries returns any. Each key has a value of its type.
  return Object.fromEntries(entries) as Pick<Create, PlainKey<Place>>;
}

function parseWords(key: string, text: string, known: readonly string[]): readonly string[] {
  const option = optionOf(key);
  const hint = `Write ${option} ${known.join(',')}`;
  const words = parseList(text).map((word) => word.trim());
  if (words.length === 0)
    throw new AppError('USAGE', `option ${option}: the list is empty`, { hint });
  const unknown = words.find((word) => !known.includes(word));
  if (unknown === undefined) return words;
  throw new AppError('USAGE', `option ${option}: unknown ${key.replace(/s$/, '')} '${unknown}'`, {
    hint,
  });
}

function parseCount(option: string, text: string): number {
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new AppError('USAGE', `option ${option}: '${text}' is not a whole number`);
}
