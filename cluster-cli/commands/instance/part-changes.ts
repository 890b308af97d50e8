import type { z } from 'zod';
import type { instanceModify } from '#shared/contract/opcode.ts';
import { readNicNetworkChanges } from '#shared/contract/static-network.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { ownValue, setOwn } from '#shared/json/own-value.ts';
import { parseIdentified } from '../../values/identified.ts';
import type { KeyValue } from '../../values/key-values.ts';
import type { ValueSource } from '../../values/value-source.ts';
import {
  composeDisk,
  composeNic,
  NETWORK_KEYS,
  NIC_KEYS,
  readKnown,
  RENAMED_NIC_KEYS,
} from './parse-options.ts';

type ModifyInput = z.input<typeof instanceModify>;
type NicChange = NonNullable<ModifyInput['nics']>[number];
type DiskChange = NonNullable<ModifyInput['disks']>[number];

const ACTIONS = ['add', 'modify', 'remove'] as const;
type Action = (typeof ACTIONS)[number];

/** A parsed `--net` or `--disk` of modify. */
interface PartText {
  readonly action: Action;
  /** The part as written; null: the last one. */
  readonly which: string | null;
  readonly values: readonly KeyValue[];
}

/**
 * Parses `--net add:link=br1`, `--net 1:modify,link=br2` and `--net 1:remove`: Ganeti's syntax,
 * with an optional word `modify`.
 * @throws AppError USAGE
 */
export function parseNicChanges(
  texts: readonly string[],
  source: ValueSource,
): readonly NicChange[] {
  return texts.map((text): NicChange => {
    const { action, which, values } = parsePart('--net', text);
    const known = readKnown(`--net ${text.split(':', 1)[0] ?? ''}`, values, NIC_KEYS, source);
    switch (action) {
      case 'add':
        return { action, at: which === null ? undefined : numberOf(which), nic: composeNic(known) };
      case 'modify':
        return { action, which: nameOf(which), changes: composeNicChanges(known) };
      case 'remove':
        refuseValues('--net', text, values);
        return { action, which: nameOf(which) };
    }
  });
}

export interface DiskChangeOptions {
  readonly disk?: readonly string[];
  readonly addDisk?: readonly string[];
  readonly removeDisk?: string;
}

/**
 * Parses `--disk add:size=10G`, `--disk 1:remove`, `--disk 1:name=data`, and our options
 * `--add-disk 10G` and `--remove-disk 1`.
 * @throws AppError USAGE
 */
export function parseDiskChanges(
  { disk = [], addDisk = [], removeDisk }: DiskChangeOptions,
  source: ValueSource,
): readonly DiskChange[] {
  const added = addDisk.map((size) => `add:size=${size}`);
  const removed = removeDisk === undefined ? [] : [`${removeDisk}:remove`];
  return [...disk, ...added, ...removed].map((text): DiskChange => {
    const { action, which, values } = parsePart('--disk', text);
    switch (action) {
      case 'add':
        return { action, disk: composeDisk(which ?? 'add', values, source) };
      case 'modify': {
        refuseResize(which, values);
        const name = readKnown(`--disk ${which ?? ''}`, values, ['name'], source).get('name');
        if (name !== undefined)
          return { action, which: nameOf(which), changes: { name: orNone(name) } };
        throw new AppError('USAGE', `option --disk ${text}: nothing to change`, {
          hint: `Write --disk ${which ?? 'N'}:name=NAME`,
        });
      }
      case 'remove':
        refuseValues('--disk', text, values);
        return { action, which: nameOf(which) };
    }
  });
}

function parsePart(option: string, text: string): PartText {
  const { ident, values } = parseIdentified(option, text);
  const alone = actionOf(ident);
  if (alone === 'modify')
    throw new AppError('USAGE', `option ${option} ${text}: the number is missing`, {
      hint: `Write ${option} N:modify,…; N is a number, a name or a UUID`,
    });
  if (alone !== undefined) return { action: alone, which: null, values };
  const [first, ...rest] = values;
  const named = first?.value.kind === 'flag' ? actionOf(first.key) : undefined;
  if (named !== undefined) return { action: named, which: ident, values: rest };
  if (first !== undefined) return { action: 'modify', which: ident, values };
  throw new AppError('USAGE', `option ${option} ${text}: no change given`, {
    hint: `Write ${option} add:…, ${option} N:modify,… or ${option} N:remove`,
  });
}

function actionOf(word: string): Action | undefined {
  return ACTIONS.find((action) => action === word);
}

function composeNicChanges(
  known: ReadonlyMap<string, string | null>,
): Extract<NicChange, { action: 'modify' }>['changes'] {
  const nic: Record<string, string | null> = {};
  const network: Partial<Record<(typeof NETWORK_KEYS)[number], string | null>> = {};
  for (const [key, text] of known) {
    const value = orNone(text);
    const networkKey = NETWORK_KEYS.find((name) => name === key);
    if (networkKey !== undefined) network[networkKey] = value;
    else if (key === 'mac')
      nic['mac'] = value === 'generate' ? 'auto' : (value ?? 'auto').toLowerCase();
    else setOwn(nic, ownValue(RENAMED_NIC_KEYS, key) ?? key, value);
  }
  // The opcode's schema checks the values.
  return { ...nic, ...readNicNetworkChanges(network) };
}

function orNone(text: string | null): string | null {
  return text === 'none' ? null : text;
}

/** Returns a number for digits; else the text is a name or a UUID. */
function nameOf(which: string | null): number | string {
  if (which === null) return -1;
  return numberOf(which) ?? which;
}

function numberOf(text: string): number | undefined {
  return /^-1$|^\d{1,3}$/.test(text) ? Number(text) : undefined;
}

function refuseResize(which: string | null, values: readonly KeyValue[]): void {
  if (values.every(({ key }) => key !== 'size')) return;
  throw new AppError('USAGE', `option --disk: the size of disk ${which ?? ''} cannot be modified`, {
    hint: 'gnt-instance grow-disk NAME DISK AMOUNT grows a disk',
  });
}

function refuseValues(option: string, text: string, values: readonly KeyValue[]): void {
  if (values.length === 0) return;
  throw new AppError('USAGE', `option ${option} ${text}: remove takes no parameters`);
}
