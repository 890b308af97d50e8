import { z } from 'zod';
import { ownValue } from '#shared/json/own-value.ts';
import { parseInput } from '../http/http-errors.ts';
import { loadGroup, loadNodes, type NodeFactsSources } from './rapi-node-routes.ts';
import { groupFields } from './group-fields.ts';
import { fieldOf, type Field, type Fields } from './fields.ts';
import { instanceFields } from './instance-fields.ts';
import { jobFields } from './job-fields.ts';
import { nodeFields } from './node-fields.ts';
import { parseFilter } from './query-filter.ts';
import { RapiFailure } from './rapi-failure.ts';
import type { RapiRequest, RapiRoute } from './rapi-route.ts';
import type { RapiUser } from './users-file.ts';
import type { Visible } from './visible.ts';

/** Ganeti's states of a value. */
const NORMAL = 0;
const UNKNOWN = 1;
const UNAVAILABLE = 3;
const MAX_FIELDS = 200;

interface Resource {
  readonly fields: Fields<never>;
  /** Returns every item with all its fields. */
  readonly load: (user: RapiUser) => Promise<readonly Readonly<Record<string, unknown>>[]>;
}

export interface RapiQueryDependencies extends NodeFactsSources {
  readonly visible: Pick<Visible, 'instances' | 'jobs'>;
}

/**
 * Returns Ganeti's generic queries: `fields` describes the columns, `data` has a row of `[state,
 * value]` per item.
 */
export function queryRoutes(dependencies: RapiQueryDependencies): readonly RapiRoute[] {
  const resources = new Map<string, Resource>([
    ['instance', resource(instanceFields, (user) => dependencies.visible.instances(user))],
    ['node', resource(nodeFields, (user) => loadNodes(dependencies, user))],
    ['group', resource(groupFields, async (user) => [await loadGroup(dependencies, user)])],
    ['job', resource(jobFields, (user) => dependencies.visible.jobs(user))],
  ]);
  const find = ({ params }: RapiRequest): Resource => {
    const found = resources.get(params['resource'] ?? '');
    if (found !== undefined) return found;
    const known = [...resources.keys()].join(', ');
    throw new RapiFailure(404, `there is no query for '${params['resource']}', only for ${known}`);
  };
  return [
    {
      method: 'GET',
      path: '/2/query/:resource',
      role: 'read',
      handle: (request) => answer(find(request), request.user, requiredNames(request.query), null),
    },
    {
      method: 'PUT',
      path: '/2/query/:resource',
      // Only reads, despite its method PUT.
      role: 'read',
      handle: (request) => {
        const { fields, qfilter, filter } = parseInput(queryRequest, request.body ?? {});
        const names = fields ?? requiredNames(request.query);
        return answer(find(request), request.user, names, qfilter ?? filter);
      },
    },
    {
      method: 'GET',
      path: '/2/query/:resource/fields',
      role: 'read',
      handle: (request) => {
        const { fields } = find(request);
        const names = splitNames(request.query) ?? Object.keys(fields);
        return { fields: names.map((name) => describeField(name, fieldOf(fields, name))) };
      },
    },
  ];
}

const queryRequest = z.object({
  fields: z.array(z.string().max(100)).max(MAX_FIELDS).optional(),
  qfilter: z.unknown().optional(),
  /** The name in older clients. */
  filter: z.unknown().optional(),
});

function resource<T>(fields: Fields<T>, list: (user: RapiUser) => Promise<readonly T[]>): Resource {
  return {
    fields,
    load: async (user) =>
      (await list(user)).map((item) =>
        Object.fromEntries(Object.entries(fields).map(([name, { of }]) => [name, of(item)])),
      ),
  };
}

async function answer(
  { fields, load }: Resource,
  user: RapiUser,
  names: readonly string[],
  filter: unknown,
): Promise<unknown> {
  const matches = parseFilter(filter, new Set(Object.keys(fields)));
  const items = (await load(user)).filter(matches);
  return {
    fields: names.map((name) => describeField(name, fieldOf(fields, name))),
    data: items.map((item) =>
      names.map((name) => {
        if (!Object.hasOwn(fields, name)) return [UNKNOWN, null];
        return ownValue(item, name) === null ? [UNAVAILABLE, null] : [NORMAL, ownValue(item, name)];
      }),
    ),
  };
}

function describeField(name: string, field: Field<never> | undefined): object {
  if (field === undefined) return { name, title: name, kind: 'unknown', doc: 'Unknown field' };
  const { title, kind, doc } = field;
  return { name, title, kind, doc };
}

function requiredNames(query: URLSearchParams): readonly string[] {
  const names = splitNames(query);
  if (names !== undefined) return names;
  throw new RapiFailure(400, "Missing 'fields' query argument");
}

/** @throws RapiFailure 400 for more names than clients need */
function splitNames(query: URLSearchParams): readonly string[] | undefined {
  const names = query
    .get('fields')
    ?.split(',')
    .map((name) => name.trim());
  if (names !== undefined && names.length > MAX_FIELDS)
    throw new RapiFailure(400, `more than ${MAX_FIELDS} fields`);
  return names;
}
