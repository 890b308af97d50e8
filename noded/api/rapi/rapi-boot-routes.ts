import { z } from 'zod';
import {
  bootEnvDocument,
  bootParam,
  bootTemplate,
  foldBootEnv,
} from '#shared/contract/boot-env.ts';
import { bootContent, type BootEnvInfo } from '#shared/contract/boot-objects.ts';
import type { ProfileInfo } from '#shared/contract/profile.ts';
import { isWithin } from '#shared/contract/submitter.ts';
import { describeBootEnv, describeProfiles } from '../http/object-routes.ts';
import { parseInput } from '../http/http-errors.ts';
import type { ClusterRepository } from '../../records/cluster-repository.ts';
import type { InstanceIndex } from '../../records/instance-index.ts';
import { profileRequest } from './instance-bodies.ts';
import { RapiFailure } from './rapi-failure.ts';
import { isSet, submitRoute, type RapiRequest, type RapiRoute, type Submit } from './rapi-route.ts';
import type { RapiUser } from './users-file.ts';

/** Objects as dr-provision writes them, legacy fields of a BootEnv included. */
const contentRequest = z.strictObject({
  bootenvs: z.array(bootEnvDocument).default([]),
  templates: z.array(bootTemplate).default([]),
  params: z.array(bootParam).default([]),
  profiles: bootContent.profiles,
});

/** Without a source, the BootEnv's IsoUrl is fetched. */
const uploadRequest = z.strictObject({ source: z.string().optional() });

export interface RapiBootDependencies {
  readonly clusters: Pick<ClusterRepository, 'listBootEnvs' | 'listProfiles'>;
  readonly index: Pick<InstanceIndex, 'list'>;
  readonly submit: Submit;
}

/**
 * Returns routes beyond Ganeti's for boot environments and profiles. Users bound to instances see
 * their names, not their content.
 */
export function bootContentRoutes(dependencies: RapiBootDependencies): readonly RapiRoute[] {
  const { submit } = dependencies;
  const of = ({ params }: RapiRequest): string => params['name'] ?? '';
  return [
    ...listRoutes('bootenvs', 'BootEnv', (user) => listBootEnvs(dependencies, user)),
    ...listRoutes('profiles', 'profile', (user) => listProfiles(dependencies, user)),
    submitRoute(submit, 'POST', '/2/bootenvs', ({ body }) => {
      const { bootenvs, ...content } = parseInput(contentRequest, body);
      const bootEnvs = bootenvs.map((document) => foldBootEnv(document).bootEnv);
      return { opcode: 'BOOTENV_SET', bootEnvs, ...content };
    }),
    submitRoute(submit, 'POST', '/2/bootenvs/:name/uploadiso', (request) => {
      const { source } = parseInput(uploadRequest, request.body ?? {});
      return { opcode: 'BOOTENV_UPLOAD_ISO', bootEnv: of(request), source };
    }),
    submitRoute(submit, 'DELETE', '/2/bootenvs/:name', (request) => {
      return { opcode: 'BOOTENV_REMOVE', object: { kind: 'bootEnv', name: of(request) } };
    }),
    submitRoute(submit, 'PUT', '/2/profiles/:name', (request) => {
      const { osparams, osparams_private } = parseInput(profileRequest, request.body);
      return {
        ...{ opcode: 'PROFILE_SET_PARAMS', name: of(request) },
        ...{ osParameters: osparams, osParametersPrivate: osparams_private },
      };
    }),
    submitRoute(submit, 'DELETE', '/2/profiles/:name', (request) => {
      return { opcode: 'PROFILE_REMOVE', name: of(request) };
    }),
  ];
}

/** Returns routes that list objects of a kind, by name or with `bulk` in full, and show one. */
function listRoutes(
  path: string,
  kind: string,
  list: (user: RapiUser) => Promise<readonly { readonly name: string }[]>,
): readonly RapiRoute[] {
  return [
    {
      ...{ method: 'GET', path: `/2/${path}`, role: 'read' },
      handle: async ({ user, query }) => {
        const all = await list(user);
        if (isSet(query, 'bulk')) return all;
        return all.map(({ name: id }) => ({ id, uri: `/2/${path}/${id}` }));
      },
    },
    {
      ...{ method: 'GET', path: `/2/${path}/:name`, role: 'read' },
      handle: async ({ user, params }) => {
        const found = (await list(user)).find(({ name }) => name === params['name']);
        if (found === undefined)
          throw new RapiFailure(404, `there is no ${kind} '${params['name']}'`);
        return found;
      },
    },
  ];
}

type BootLists = Pick<RapiBootDependencies, 'clusters' | 'index'>;

/** Lists boot environments for a user. A bound user sees neither sources nor documents. */
export async function listBootEnvs(
  { clusters, index }: BootLists,
  { scope }: RapiUser,
): Promise<
  readonly (Omit<BootEnvInfo, 'document'> & Record<'document', BootEnvInfo['document'] | null>)[]
> {
  const seen = (await index.list()).filter((each) => isWithin(scope, each));
  const bootEnvs = await clusters.listBootEnvs();
  return bootEnvs.map((bootEnv) => {
    const told = describeBootEnv(bootEnv, seen);
    return scope === null ? told : { ...told, isoUrl: '', document: null };
  });
}

/** Lists profiles for a user. A bound user sees no values. */
export async function listProfiles(
  { clusters, index }: BootLists,
  { scope }: RapiUser,
): Promise<readonly ProfileInfo[]> {
  const seen = (await index.list()).filter((each) => isWithin(scope, each));
  const profiles = describeProfiles(await clusters.listProfiles(), seen);
  if (scope === null) return profiles;
  return profiles.map((profile) => ({ ...profile, osParameters: {}, osParametersPrivate: {} }));
}
