import { ownValue } from '#shared/json/own-value.ts';
import { availableParallelism, totalmem } from 'node:os';
import { boundedRows } from '#shared/contract/parameter-keys.ts';
import type { BeParameters, HvParameters } from '#shared/contract/machine-parameters.ts';
import type { Opcode } from '#shared/contract/opcode.ts';
import { MIB } from '#shared/units/bytes.ts';

type Parameters = HvParameters & BeParameters;
type Formers = Partial<Pick<Parameters, keyof Parameters>>;

/**
 * Greatest values for users who are bound to instances. An instance takes these shares of the node
 * and of the metadata service from its neighbours, so only an unbound user raises them.
 */
const MOST: ReadonlyMap<string, () => number> = new Map([
  ...boundedRows.map(([key, row]) => [key, () => Number(row.default)] as const),
  ['memoryMiB', () => Math.floor(totalmem() / MIB)],
  ['vcpus', () => availableParallelism()],
]);

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
  const most = MOST.get(key);
  if (most === undefined) return Infinity;
  const own = Object.entries(former).find(([name]) => name === key)?.[1];
  return Math.max(most(), Number(own ?? 0));
}
