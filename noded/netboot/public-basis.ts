import { hash } from 'node:crypto';
import type { BootParameter, BootPlanInput, BootSource } from './boot-plan.ts';

type BasisInput = Pick<
  BootPlanInput,
  | 'machine'
  | 'bootEnv'
  | 'templates'
  | 'schemas'
  | 'parameters'
  | 'layers'
  | 'packageMirrors'
  | 'baseUrl'
>;

/**
 * Digest of all that templates may read besides secrets, whether they do or not: a secret's value
 * can decide what is read behind it, or name it. Pure.
 * @param source templates are told what is in it
 */
export function digestPublic(input: BasisInput, source: BootSource | null): string {
  const { machine, bootEnv, templates, schemas, parameters, layers, packageMirrors, baseUrl } =
    input;
  const read = [
    ...[machine.name, machine.uuid, machine.mac, machine.address, machine.profiles],
    ...[baseUrl, bootEnv],
    digestOf(templates),
    digestOf(schemas),
    source,
    byName(new Map(Object.entries(packageMirrors))),
    openOf(parameters),
    layers.map(({ values }) => openOf(values)),
  ];
  return hash('sha256', JSON.stringify(read));
}

/** Digests of maps that many plans share, which are not changed. */
const digests = new WeakMap<ReadonlyMap<string, unknown>, string>();

function digestOf(map: ReadonlyMap<string, unknown>): string {
  const known = digests.get(map) ?? hash('sha256', JSON.stringify(byName(map)));
  digests.set(map, known);
  return known;
}

function openOf(values: ReadonlyMap<string, BootParameter>): unknown {
  const open = [...values].filter(([, { visibility }]) => visibility !== 'secret');
  return byName(
    new Map(open.map(([name, { visibility, value }]) => [name, [visibility, value]] as const)),
  );
}

function byName(values: ReadonlyMap<string, unknown>): readonly (readonly [string, unknown])[] {
  return [...values].sort(([left], [right]) => (left < right ? -1 : 1));
}
