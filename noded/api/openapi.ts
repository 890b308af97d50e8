import { z } from 'zod';
import {
  activeDisk,
  apiError,
  clusterInfo,
  doctorReport,
  exportInfo,
  jobSubmitted,
  listedNode,
  nodeInfo,
  osInfo,
} from '#shared/contract/api.ts';
import { instanceInfo } from '#shared/contract/instance.ts';
import { jobEvent, jobRecord } from '#shared/contract/job.ts';
import { opcode } from '#shared/contract/opcode.ts';
import { operations, type ApiOperation, type Body } from './openapi-operations.ts';

const answerTypes: Readonly<Record<string, z.ZodType>> = {
  ActiveDisk: activeDisk,
  ApiError: apiError,
  ClusterInfo: clusterInfo,
  DoctorReport: doctorReport,
  ExportInfo: exportInfo,
  DryRunAccepted: z.object({ ok: z.literal(true) }),
  InstanceInfo: instanceInfo,
  JobEvent: jobEvent,
  JobRecord: jobRecord,
  JobSubmitted: jobSubmitted,
  ListedNode: listedNode,
  NodeInfo: nodeInfo,
  OsInfo: osInfo,
};
/** As a client writes them: what has a default may be left out. */
const requestTypes: Readonly<Record<string, z.ZodType>> = { Opcode: opcode };

const PREFIX = '#/components/schemas/';
type Json = Readonly<Record<string, unknown>>;

/** The node's API as an OpenAPI 3.1 document, made of the types that it validates with. Pure. */
export function describeApi(version: string): Json {
  const paths: Record<string, Record<string, Json>> = {};
  for (const [route, operation] of Object.entries(operations)) {
    const [method = '', path = ''] = route.split(' ');
    paths[path] = { ...paths[path], [method.toLowerCase()]: describeOperation(path, operation) };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'gnt-noded',
      version,
      description:
        "The node's API on the unix socket run/gnt/noded.sock. File permissions are the only key.",
    },
    paths,
    components: {
      schemas: { ...schemasOf(answerTypes, 'output'), ...schemasOf(requestTypes, 'input') },
    },
  };
}

function describeOperation(path: string, operation: ApiOperation): Json {
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }));
  const inQuery = Object.entries(operation.query ?? {}).map(([name, { description, type }]) => ({
    name,
    in: 'query',
    description,
    schema: { type },
  }));
  const answers = Object.entries(operation.answers).map(([status, body]) => [
    status,
    { description: operation.summary, ...(body !== null && { content: contentOf(body) }) },
  ]);
  return {
    summary: operation.summary,
    parameters: [...inPath, ...inQuery],
    ...(operation.request !== undefined && {
      requestBody: { required: true, content: contentOf(operation.request) },
    }),
    responses: {
      ...Object.fromEntries(answers),
      default: { description: 'A failure', content: contentOf('ApiError') },
    },
  };
}

function contentOf(body: Body): Json {
  if (typeof body === 'string') return { 'application/json': { schema: refTo(body) } };
  if ('type' in body) return { [body.type]: {} };
  return { 'application/json': { schema: { type: 'array', items: refTo(body[0]) } } };
}

function refTo(name: string): Json {
  return { $ref: `${PREFIX}${name}` };
}

function schemasOf(types: Readonly<Record<string, z.ZodType>>, io: 'input' | 'output'): Json {
  const registry = z.registry<{ id: string }>();
  for (const [id, type] of Object.entries(types)) registry.add(type, { id });
  const { schemas } = z.toJSONSchema(registry, {
    io,
    uri: (id) => `${PREFIX}${id}`,
  });
  return Object.fromEntries(
    Object.entries(schemas).map(([id, schema]) => [id, withoutHeader(schema)]),
  );
}

/** In a document, a schema is named by its place. */
function withoutHeader(schema: object): Json {
  return Object.fromEntries(
    Object.entries(schema).filter(([key]) => key !== '$id' && key !== '$schema'),
  );
}
