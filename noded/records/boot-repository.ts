import { z } from 'zod';
import type { Clock } from '#shared/clock/clock.ts';
import {
  bootEnv,
  bootParam,
  bootTemplate,
  type BootEnv,
  type BootParam,
  type BootTemplate,
} from '#shared/contract/boot-env.ts';
import type { BootObject } from '#shared/contract/boot-objects.ts';
import { parseRecord } from '#shared/store/readable-records.ts';
import { StoreConflict } from '#shared/store/store-conflict.ts';
import type { Store, Write } from '#shared/store/store.ts';
import { createCachedList } from './cached-list.ts';
import { planProfile, type ProfileChange } from './profile-repository.ts';
import { removeUnused } from './remove-unused.ts';

export const BOOT_ENVS = 'bootenvs';
const COLLECTIONS = {
  bootEnv: BOOT_ENVS,
  template: 'boot-templates',
  param: 'boot-params',
} as const satisfies Record<BootObject['kind'], string>;

const kept = <T extends z.ZodType>(value: T) => z.object({ schema: z.literal(1), value });
const keptBootEnv = kept(bootEnv);
const keptTemplate = kept(bootTemplate);
const keptParam = kept(bootParam);

export interface BootContent {
  readonly bootEnvs: readonly BootEnv[];
  readonly templates: readonly BootTemplate[];
  readonly params: readonly BootParam[];
}

/** Stores validated boot content for all nodes, never rendered content. */
export interface BootRepository {
  loadBootEnv(name: string): Promise<BootEnv | undefined>;
  /** Lists all BootEnvs, sorted by name. */
  listBootEnvs(): Promise<readonly BootEnv[]>;
  listTemplates(): Promise<readonly BootTemplate[]>;
  listParams(): Promise<readonly BootParam[]>;
  /**
   * Writes all content or none, together with changes of profiles. A change of a profile runs again
   * after a concurrent write. Other content replaces objects of the same name.
   */
  saveBootContent(content: BootContent, profiles?: readonly ProfileChange[]): Promise<void>;
  /** @param refuseUsed throws if the object has a user; runs again after each concurrent write */
  removeBootObject(object: BootObject, refuseUsed: () => Promise<void>): Promise<void>;
}

export function createBootRepository(store: Store, clock: Pick<Clock, 'now'>): BootRepository {
  // Each plan reads all templates and params, which are many and seldom change.
  const list = <T>(
    collection: string,
    schema: z.ZodType<{ readonly value: T }>,
  ): (() => Promise<readonly T[]>) =>
    createCachedList({
      ...{ store, clock, collection },
      parse: (stored) => parseRecord(schema, collection, stored).value,
    });
  return {
    loadBootEnv: async (name) => {
      const stored = await store.get(COLLECTIONS.bootEnv, name);
      return stored && parseRecord(keptBootEnv, COLLECTIONS.bootEnv, stored).value;
    },
    listBootEnvs: list(COLLECTIONS.bootEnv, keptBootEnv),
    listTemplates: list(COLLECTIONS.template, keptTemplate),
    listParams: list(COLLECTIONS.param, keptParam),
    saveBootContent: async ({ bootEnvs, templates, params }, profiles = []) => {
      for (;;) {
        const changed = await Promise.all(profiles.map((profile) => planProfile(store, profile)));
        try {
          await store.commit([
            ...bootEnvs.map((value) => write('bootEnv', value.Name, value)),
            ...templates.map((value) => write('template', value.ID, value)),
            ...params.map((value) => write('param', value.Name, value)),
            ...changed,
          ]);
          return;
        } catch (error) {
          // Only profiles can conflict: no other write expects a revision.
          if (!(error instanceof StoreConflict)) throw error;
        }
      }
    },
    removeBootObject: ({ kind, name }, refuseUsed) =>
      removeUnused(store, { collection: COLLECTIONS[kind], id: name }, refuseUsed),
  };
}

function write(kind: BootObject['kind'], id: string, value: object): Write {
  return { collection: COLLECTIONS[kind], id, expected: 'any', value: { schema: 1, value } };
}
