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
 * Returns the digest of everything except secrets that templates can read. It includes unread
 * inputs, since a secret can decide which of them are read. Pure.
 * @param source templates can read its content
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

/** Digests of maps that many plans share and never change. */
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
