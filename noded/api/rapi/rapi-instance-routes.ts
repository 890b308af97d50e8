import type { InstanceInfo } from '#shared/contract/instance.ts';
import { encodeArray, streamBegun } from '../http/stream-slices.ts';
import { pickFields } from './fields.ts';
import { instanceFields } from './instance-fields.ts';
import {
  parseCreate,
  parseExport,
  parseFailover,
  parseGrow,
  parseMigrate,
  parseModify,
  parseReboot,
  parseReinstall,
  parseRemove,
  parseRename,
  parseShutdown,
} from './instance-requests.ts';
import { RapiFailure } from './rapi-failure.ts';
import {
  isSet,
  readRoute,
  submitRoute,
  type RapiRequest,
  type RapiRoute,
  type Submit,
} from './rapi-route.ts';
import type { RapiUser } from './users-file.ts';
import type { Visible } from './visible.ts';

const ONE = '/2/instances/:name';

export interface RapiInstanceDependencies {
  readonly visible: Visible;
  readonly submit: Submit;
}

export function instanceRoutes({
  visible,
  submit: submitAs,
}: RapiInstanceDependencies): readonly RapiRoute[] {
  const find = ({ params, user }: RapiRequest): Promise<InstanceInfo> =>
    visible.instance(user, params['name'] ?? '');
  const pickedSlices = async function* (user: RapiUser): AsyncGenerator<readonly object[]> {
    for await (const slice of visible.instanceSlices(user))
      yield slice.map((instance) => pickFields(instanceFields, instance));
  };
  const submit = (
    method: RapiRoute['method'],
    path: string,
    translate: (name: string, request: RapiRequest) => unknown,
  ): RapiRoute =>
    submitRoute(submitAs, method, path, (request) =>
      translate(request.params['name'] ?? '', request),
    );
  return [
    readRoute('/2/instances', async ({ query, user }) => {
      if (isSet(query, 'bulk')) return streamBegun(pickedSlices(user), encodeArray);
      const names = (await visible.instanceNames(user)).toSorted();
      return names.map((id) => ({ id, uri: `/2/instances/${id}` }));
    }),
    // Beyond Ganeti: QEMU processes without a record, for `adopt` and DELETE.
    readRoute('/2/orphans', ({ user }) => visible.orphans(user)),
    readRoute(ONE, async (request) => pickFields(instanceFields, await find(request))),
    readRoute(`${ONE}/tags`, async (request) => (await find(request)).tags),
    readRoute(`${ONE}/console`, async (request) => describeConsole(await find(request))),
    // Creates a job despite GET, so readers may not use it.
    submit('GET', `${ONE}/info`, (name) => ({ opcode: 'INSTANCE_QUERY_DATA', name })),
    submit('POST', '/2/instances', (_, { body }) => parseCreate(body)),
    submit('DELETE', ONE, (name, { body }) => parseRemove(name, body)),
    submit('POST', `${ONE}/reinstall`, (name, request) =>
      parseReinstall(name, request.body ?? legacyReinstall(request)),
    ),
    submit('PUT', `${ONE}/startup`, (name) => ({ opcode: 'INSTANCE_STARTUP', name })),
    submit('PUT', `${ONE}/shutdown`, (name, { body }) => parseShutdown(name, body)),
    submit('POST', `${ONE}/reboot`, (name, { query, body }) =>
      parseReboot(name, query.get('type'), body),
    ),
    submit('PUT', `${ONE}/modify`, (name, { body }) => parseModify(name, body)),
    submit('PUT', `${ONE}/adopt`, (name) => ({ opcode: 'INSTANCE_ADOPT', name })),
    submit('PUT', `${ONE}/migrate`, (name, { body }) => parseMigrate(name, body)),
    submit('PUT', `${ONE}/failover`, (name, { body }) => parseFailover(name, body)),
    submitRoute(submitAs, 'PUT', `${ONE}/export`, async (request) =>
      parseExport(await find(request), request.body),
    ),
    submit('PUT', `${ONE}/rename`, (name, { body }) => parseRename(name, body)),
    submit('POST', `${ONE}/disk/:disk/grow`, (name, { params, body }) =>
      parseGrow(name, params['disk'] ?? '', body),
    ),
    submit('PUT', `${ONE}/tags`, (name, { query }) => {
      return { opcode: 'INSTANCE_SET_PARAMS', name, addTags: query.getAll('tag') };
    }),
    submit('DELETE', `${ONE}/tags`, (name, { query }) => {
      return { opcode: 'INSTANCE_SET_PARAMS', name, removeTags: query.getAll('tag') };
    }),
  ];
}

/** Reads a reinstallation from the query, where old clients put it. */
function legacyReinstall({ query }: RapiRequest): unknown {
  return { os: query.get('os'), start: !isSet(query, 'nostartup') };
}

/** Returns a command on the node for the serial console, as Ganeti does for KVM. */
function describeConsole({ name, primaryNode, running }: InstanceInfo): unknown {
  if (running === null)
    throw new RapiFailure(503, 'Instance console unavailable: it is not running');
  return {
    ...{ instance: name, kind: 'ssh', host: primaryNode, user: 'root' },
    command: ['gnt-instance', 'console', name],
    ...{ message: null, port: null, display: null },
  };
}
