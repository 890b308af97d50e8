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
 * Writes that go with a record which names profiles, networks or a BootEnv that it did not name
 * before, or another address of a network: each is written again as it is. So the commit finds all
 * of them there, and who removes one, and saw nobody that names it, finds it changed and looks
 * again (`removeUnused`). One that was lost since an instance got it stands in the way of no other
 * change of that instance.
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
    // An address that is new to an instance may be reserved meanwhile.
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

/** Somebody wrote one of those meanwhile: the commit is to be planned anew. */
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

/** The networks that cards are in, each once. */
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
