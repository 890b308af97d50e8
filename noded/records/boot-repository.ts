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

/** What instances boot by, for all nodes: validated objects, and never what is rendered of them. */
export interface BootRepository {
  loadBootEnv(name: string): Promise<BootEnv | undefined>;
  /** All of them, in the order of their names. */
  listBootEnvs(): Promise<readonly BootEnv[]>;
  listTemplates(): Promise<readonly BootTemplate[]>;
  listParams(): Promise<readonly BootParam[]>;
  /**
   * Writes all of it or none, with changes of profiles, which are asked again where somebody came
   * between; what else has a name that there is takes its place.
   */
  saveBootContent(content: BootContent, profiles?: readonly ProfileChange[]): Promise<void>;
  /** @param refuseUsed throws where somebody names it; asked again after each that came to */
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
          // Only profiles can conflict: nothing else is expected to be as it was.
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
