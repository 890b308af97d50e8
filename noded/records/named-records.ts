import { LOCAL_BOOT_ENV } from '#shared/contract/boot-objects.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { ownValue } from '#shared/json/own-value.ts';
import type { StoreConflict } from '#shared/store/store-conflict.ts';
import type { Store, Write } from '#shared/store/store.ts';
import { BOOT_ENVS } from './boot-repository.ts';
import { NETWORKS } from './network-repository.ts';
import { PROFILES } from './profile-repository.ts';

type Naming = Pick<InstanceRecord, 'profiles' | 'bootEnv' | 'nics'>;
type Named = Pick<Write, 'collection' | 'id'>;

const NAMES_NOTHING: Naming = { profiles: [], bootEnv: null, nics: [] };

/**
 * Plans writes that protect the objects that a record newly names: profiles, networks, a BootEnv,
 * or a new address of a network. Each object is written again unchanged. The commit thus fails if
 * an object is gone. A concurrent `removeUnused` finds the object changed and checks its users
 * again. Objects that the record named before are skipped: a lost one must not prevent other
 * changes.
 * @throws AppError NOT_FOUND, BOOTENV_NOT_FOUND
 */
export async function planNamed(
  store: Pick<Store, 'get'>,
  after: Naming,
  before: Naming = NAMES_NOTHING,
): Promise<readonly Write[]> {
  const known = namedBy(before);
  const isKnown = ({ collection, id }: Named): boolean =>
    known.some((one) => one.collection === collection && one.id === id) &&
    // A new address of the instance may have been reserved meanwhile.
    (collection !== NETWORKS || addressesIn(id, after).isSubsetOf(addressesIn(id, before)));
  const gained = namedBy(after).filter((named) => !isKnown(named));
  return Promise.all(
    gained.map(async (named): Promise<Write> => {
      const stored = await store.get(named.collection, named.id);
      if (stored === undefined) throw notThere(named);
      return { ...named, expected: stored.revision, value: stored.value };
    }),
  );
}

/** Returns whether a named object was written concurrently: plan the commit again. */
export function isOfNamed(conflict: StoreConflict): boolean {
  return [PROFILES, BOOT_ENVS, NETWORKS].includes(conflict.collection);
}

function namedBy({ profiles, bootEnv, nics }: Naming): readonly Named[] {
  const bootEnvs = bootEnv === null || bootEnv === LOCAL_BOOT_ENV ? [] : [bootEnv];
  return [
    ...profiles.map((id) => ({ collection: PROFILES, id })),
    ...bootEnvs.map((id) => ({ collection: BOOT_ENVS, id })),
    ...[...networksOf(nics)].map((id) => ({ collection: NETWORKS, id })),
  ];
}

function addressesIn(network: string, { nics }: Pick<Naming, 'nics'>): ReadonlySet<string> {
  const own = nics.filter(({ networkName }) => networkName === network);
  return new Set(own.flatMap(({ ip }) => ip ?? []));
}

export function networksOf(nics: readonly InstanceRecord['nics'][number][]): ReadonlySet<string> {
  return new Set(nics.flatMap(({ networkName }) => networkName ?? []));
}

const KINDS: Readonly<Record<string, { readonly word: string; readonly program: string }>> = {
  [PROFILES]: { word: 'profile', program: 'gnt-profile' },
  [NETWORKS]: { word: 'network', program: 'gnt-network' },
};

function notThere({ collection, id: name }: Named): AppError {
  const { word, program } = ownValue(KINDS, collection) ?? {
    word: 'BootEnv',
    program: 'gnt-bootenv',
  };
  return new AppError(
    collection === BOOT_ENVS ? 'BOOTENV_NOT_FOUND' : 'NOT_FOUND',
    `there is no ${word} '${name}'`,
    { details: { name }, hint: `List them: ${program} list` },
  );
}
