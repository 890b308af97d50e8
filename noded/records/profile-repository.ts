import { profileRecord, type ProfileRecord } from '#shared/contract/profile.ts';
import { parseRecord } from '#shared/store/readable-records.ts';
import { StoreConflict } from '#shared/store/store-conflict.ts';
import type { Store, Write } from '#shared/store/store.ts';
import { removeUnused } from './remove-unused.ts';

export const PROFILES = 'profiles';

/** Stores the cluster's profiles: sets of OS parameters that instances name. */
export interface ProfileRepository {
  loadProfile(name: string): Promise<ProfileRecord | undefined>;
  /** Lists all profiles, sorted by name. */
  listProfiles(): Promise<readonly ProfileRecord[]>;
  /**
   * Changes a profile or creates it. Repeats reading, changing and writing after each concurrent
   * write.
   */
  updateProfile(
    name: string,
    change: (profile: ProfileRecord) => ProfileRecord,
  ): Promise<ProfileRecord>;
  /** @param refuseUsed throws if an instance names it; runs again after each concurrent write */
  removeProfile(name: string, refuseUsed: () => Promise<void>): Promise<void>;
}

/** A change of one profile. A missing profile counts as an empty one. */
export interface ProfileChange {
  readonly name: string;
  readonly change: (profile: ProfileRecord) => ProfileRecord;
}

/** Plans a write that expects the profile's present revision. */
export async function planProfile(
  store: Pick<Store, 'get'>,
  { name, change }: ProfileChange,
): Promise<Write & { readonly value: ProfileRecord }> {
  const stored = await store.get(PROFILES, name);
  const current =
    stored === undefined ? emptyProfile(name) : parseRecord(profileRecord, PROFILES, stored);
  const expected = stored?.revision ?? 'absent';
  return { collection: PROFILES, id: name, expected, value: change(current) };
}

export function createProfileRepository(store: Store): ProfileRepository {
  return {
    loadProfile: async (name) => {
      const stored = await store.get(PROFILES, name);
      return stored && parseRecord(profileRecord, PROFILES, stored);
    },
    listProfiles: async () =>
      (await store.list(PROFILES)).map((stored) => parseRecord(profileRecord, PROFILES, stored)),
    updateProfile: async (name, change) => {
      for (;;) {
        const write = await planProfile(store, { name, change });
        try {
          await store.commit([write]);
          return write.value;
        } catch (error) {
          if (!(error instanceof StoreConflict)) throw error;
        }
      }
    },
    removeProfile: (name, refuseUsed) =>
      removeUnused(store, { collection: PROFILES, id: name }, refuseUsed),
  };
}

function emptyProfile(name: string): ProfileRecord {
  return { schema: 1, name, osParameters: {}, osParametersPrivate: {} };
}
