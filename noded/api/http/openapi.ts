import { z } from 'zod';
import {
  activeDisk,
  apiError,
  clusterInfo,
  doctorReport,
  dryRunAccepted,
  exportInfo,
  jobSubmitted,
  listedNode,
  nodeInfo,
  nodeReport,
  osInfo,
  webSession,
} from '#shared/contract/api.ts';
import { bootEnvInfo, bootPlanInfo } from '#shared/contract/boot-objects.ts';
import {
  helloEvent,
  instancesEvent,
  jobsEvent,
  nodesEvent,
  objectsEvent,
} from '#shared/contract/cluster-event.ts';
import type { Media } from '#shared/contract/endpoint.ts';
import { listEndpoints, type ListedEndpoint } from '#shared/contract/endpoints.ts';
import { hookBook } from '#shared/contract/hook-book.ts';
import { catalogueInfo, imageInfo, resolvedImage } from '#shared/contract/image-catalogue.ts';
import { instanceInfo, instanceSummary } from '#shared/contract/instance.ts';
import { jobEvent, jobRecord } from '#shared/contract/job.ts';
import { opcode } from '#shared/contract/opcode.ts';
import { networkInfo } from '#shared/contract/network.ts';
import { profileInfo } from '#shared/contract/profile.ts';
import { ownValue, setOwn } from '#shared/json/own-value.ts';

/** Names of types in the document. Types without a name are inlined. */
const answerTypes: Readonly<Record<string, z.ZodType>> = {
  ActiveDisk: activeDisk,
  ApiError: apiError,
  BootEnvInfo: bootEnvInfo,
  BootPlan: bootPlanInfo,
  CatalogueInfo: catalogueInfo,
  ClusterInfo: clusterInfo,
  DoctorReport: doctorReport,
  ExportInfo: exportInfo,
  HookBook: hookBook,
  DryRunAccepted: dryRunAccepted,
  ImageInfo: imageInfo,
  InstanceInfo: instanceInfo,
  InstanceSummary: instanceSummary,
  HelloEvent: helloEvent,
  InstancesEvent: instancesEvent,
  JobsEvent: jobsEvent,
  NodesEvent: nodesEvent,
  ObjectsEvent: objectsEvent,
  WebSession: webSession,
  JobEvent: jobEvent,
  JobRecord: jobRecord,
  JobSubmitted: jobSubmitted,
  ListedNode: listedNode,
  NodeInfo: nodeInfo,
  NodeReport: nodeReport,
  OsInfo: osInfo,
  ProfileInfo: profileInfo,
  ResolvedImage: resolvedImage,
  NetworkInfo: networkInfo,
};
/** Types of requests. No answer contains them. */
const requestTypes: Readonly<Record<string, z.ZodType>> = { Opcode: opcode };
const names = new Map(
  Object.entries({ ...answerTypes, ...requestTypes }).map(([name, type]) => [type, name]),
);

const PREFIX = '#/components/schemas/';
/** A request, in which fields with a default are optional, or an answer, which has them all. */
type Direction = 'input' | 'output';
type Json = Readonly<Record<string, unknown>>;

/**
 * Returns the node's API as an OpenAPI 3.1 document, generated from the table of endpoints. Pure.
 */
export function describeApi(version: string): Json {
  const paths: Record<string, Record<string, Json>> = {};
  for (const endpoint of listEndpoints()) {
    const path = endpoint.path.replaceAll('{*', '{');
    setOwn(paths, path, {
      ...ownValue(paths, path),
      [endpoint.method.toLowerCase()]: describeEndpoint(path, endpoint),
    });
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'gnt-noded',
      version,
      description:
        'The API of the node on the unix socket run/gnt/noded.sock. Only file permissions control access.',
    },
    paths,
    components: {
      schemas: { ...schemasOf(answerTypes, 'output'), ...schemasOf(requestTypes, 'input') },
    },
  };
}

function describeEndpoint(
  path: string,
  { summary, query, request, answers }: ListedEndpoint,
): Json {
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }));
  const responses = Object.entries(answers).map(([status, body]) => [
    status,
    { description: summary, ...(body !== null && { content: contentOf(body, 'output') }) },
  ]);
  return {
    summary,
    parameters: [...inPath, ...Object.entries(query?.shape ?? {}).map(describeQuery)],
    ...(request !== undefined && {
      requestBody: { required: true, content: contentOf(request, 'input') },
    }),
    responses: {
      ...Object.fromEntries(responses),
      default: { description: 'A failure', content: contentOf(apiError, 'output') },
    },
  };
}

function describeQuery([name, type]: readonly [string, z.core.$ZodType]): Json {
  const { description, ...schema } = withoutHeader(z.toJSONSchema(type, optionsOf('input')));
  return { name, in: 'query', description, schema };
}

function contentOf(body: z.ZodType | Media, direction: Direction): Json {
  if (body instanceof z.ZodType)
    return { 'application/json': { schema: schemaOf(body, direction) } };
  return { [body.type]: {} };
}

function schemaOf(type: z.core.$ZodType, direction: Direction): Json {
  // The lookup is by identity, so the cast is safe for any type.
  const name = names.get(type as z.ZodType);
  if (name !== undefined) return { $ref: `${PREFIX}${name}` };
  if (type instanceof z.ZodArray)
    return { type: 'array', items: schemaOf(type.element, direction) };
  return withoutHeader(z.toJSONSchema(type, optionsOf(direction)));
}

function schemasOf(types: Readonly<Record<string, z.ZodType>>, direction: Direction): Json {
  const registry = z.registry<{ id: string }>();
  for (const [id, type] of Object.entries(types)) registry.add(type, { id });
  const { schemas } = z.toJSONSchema(registry, {
    ...optionsOf(direction),
    uri: (id) => `${PREFIX}${id}`,
  });
  return Object.fromEntries(
    Object.entries(schemas).map(([id, schema]) => [id, withoutHeader(schema)]),
  );
}

/**
 * Requests state a default in the description, because generators of clients take a field with the
 * keyword `default` as always present.
 */
function optionsOf(io: Direction): z.core.ToJSONSchemaParams {
  if (io === 'output') return { io };
  return {
    io,
    override: ({ jsonSchema }) => {
      if (jsonSchema.default === undefined) return;
      jsonSchema.description ??= `default: ${JSON.stringify(jsonSchema.default)}`;
      delete jsonSchema.default;
    },
  };
}

/** Leaves out `$id` and `$schema`: in a document, a schema is known by its place. */
function withoutHeader(schema: object): Json {
  return Object.fromEntries(
    Object.entries(schema).filter(([key]) => key !== '$id' && key !== '$schema'),
  );
}
