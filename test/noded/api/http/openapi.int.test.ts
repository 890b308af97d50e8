import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { inspect } from 'node:util';
import { z } from 'zod';
import { run } from '#shared/process/run.ts';
import { describeApi } from '../../../../noded/api/http/openapi.ts';
import { createApiRouter } from '../../../../noded/api/http/serve-routes.ts';
import { ask, createApiLab, node } from '../../support/api-lab.ts';

interface Document {
  readonly paths: Record<string, Record<string, Operation>>;
  readonly components: { readonly schemas: Record<string, object> };
}
interface Operation {
  readonly parameters: readonly { readonly name: string; readonly in: string }[];
  readonly requestBody?: { readonly content: Content };
  readonly responses: Record<string, { readonly content?: Content }>;
}
type Content = Record<string, { readonly schema?: object }>;

/** Returns a validator made from the document alone. */
function validatorOf(document: Document, schema: object): z.ZodType {
  const text = JSON.stringify({ ...schema, $defs: document.components.schemas });
  return z.fromJSONSchema(
    JSON.parse(text.replaceAll('#/components/schemas/', '#/$defs/')) as Parameters<
      typeof z.fromJSONSchema
    >[0],
  );
}

function createDocument(): Document {
  return describeApi('1') as unknown as Document;
}

function schemaOf(content: Content | undefined): object {
  const schema = content?.['application/json']?.schema;
  assert.ok(schema);
  return schema;
}

test('every route is in the document, and the document has no other', async (t) => {
  const { served } = await createApiLab(t);
  const routes = createApiRouter(served.handlers)
    .stack.flatMap(({ methods, path }) =>
      methods
        .filter((method) => method !== 'HEAD')
        .map((method) => `${method} ${String(path).replace('{/*path}', '/:path')}`),
    )
    .map((route) => route.replaceAll(/:(\w+)/g, '{$1}'));
  const streams = [
    ...['instances/{name}/connect/{port}', 'instances/{name}/console'],
    ...['streams', 'files'].map((kind) => `arrivals/{uuid}/{session}/${kind}/{name}`),
  ].map((path) => `GET /v1/${path}`);
  const described = Object.entries(createDocument().paths).flatMap(([path, operations]) =>
    Object.keys(operations).map((method) => `${method.toUpperCase()} ${path}`),
  );
  assert.ok(described.length > 20);
  assert.deepEqual(described.sort(), [...routes, ...streams].sort());
});

test('every reference of the document leads to a type in it', () => {
  const document = createDocument();
  const references = [...JSON.stringify(document).matchAll(/"\$ref":"([^"]*)"/g)];
  assert.ok(references.length > 20);
  for (const [, reference = ''] of references) {
    assert.ok(reference.slice('#/components/schemas/'.length) in document.components.schemas);
  }
});

test('answers of the daemon validate against the document that it serves, and others do not', async (t) => {
  const { path, start, dependencies } = await createApiLab(t, {
    describeNode: () => Promise.resolve(node),
  });
  const { name } = await start(true);
  await dependencies.disks.createEmpty(await dependencies.instances.findByName(name));
  const served = await ask(path, 'GET', '/v1/openapi.json');
  assert.match(served.headers['content-type'] ?? '', /^application\/json/);
  const document = JSON.parse(served.text) as Document;
  const shutdown = JSON.stringify({ opcode: 'INSTANCE_SHUTDOWN', name });
  const requests = [
    ['GET', '/v1/node', '/v1/node', 200],
    ['GET', '/v1/nodes', '/v1/nodes', 200],
    ['GET', '/v1/doctor', '/v1/doctor', 200],
    ['GET', '/v1/cluster', '/v1/cluster', 200],
    ['GET', '/v1/instances', '/v1/instances', 200],
    ['GET', '/v1/instances/{name}', `/v1/instances/${name}`, 200],
    ['GET', '/v1/instances/{name}/disks', `/v1/instances/${name}/disks`, 200],
    ['GET', '/v1/instances/{name}/hooks', `/v1/instances/${name}/hooks`, 200],
    ['GET', '/v1/os', '/v1/os', 200],
    ['POST', '/v1/jobs', '/v1/jobs', 202],
    ['POST', '/v1/jobs', '/v1/jobs?dry-run=1', 200],
    ['GET', '/v1/jobs', '/v1/jobs', 200],
    ['GET', '/v1/jobs/{id}', '/v1/jobs/1', 200],
  ] as const;
  for (const [method, route, target, status] of requests) {
    const body = method === 'POST' ? shutdown : undefined;
    const answer = await ask(path, method, target, body);
    assert.equal(answer.status, status, `${target}: ${answer.text}`);
    const operation = document.paths[route]?.[method.toLowerCase()];
    const validator = validatorOf(document, schemaOf(operation?.responses[status]?.content));
    const parsed = validator.safeParse(JSON.parse(answer.text));
    assert.ok(parsed.success, `${target}: ${parsed.error?.message}`);
    assert.ok(!validator.safeParse({ nothing: 'of this' }).success, route);
  }
  const failure = await ask(path, 'GET', '/v1/jobs/99');
  const failed = document.paths['/v1/jobs/{id}']?.['get']?.responses['default']?.content;
  assert.ok(validatorOf(document, schemaOf(failed)).safeParse(JSON.parse(failure.text)).success);
});

test('the document takes the operations that the daemon takes, defaults left out', () => {
  const document = createDocument();
  const content = document.paths['/v1/jobs']?.['post']?.requestBody?.content;
  const validator = validatorOf(document, schemaOf(content));
  const create = { opcode: 'INSTANCE_CREATE', name: 'web1', osImage: '/a.raw' };
  assert.ok(validator.safeParse(create).success);
  const reset = { opcode: 'INSTANCE_SET_PARAMS', name: 'web1', beparams: { vcpus: null } };
  assert.ok(validator.safeParse(reset).success);
  for (const wrong of [
    { ...create, opcode: 'NO_SUCH' },
    { ...create, colour: 1 },
    { ...create, name: 7 },
  ]) {
    assert.ok(!validator.safeParse(wrong).success, JSON.stringify(wrong));
  }
});

/** A client's program that compiles with the types of `openapi-typescript`. */
const CLIENT = `
import type { components, paths } from './api.d.ts';

type Answer<T> = T extends { responses: { 200: { content: { 'application/json': infer B } } } } ? B : never;
type Create = Extract<components['schemas']['Opcode'], { opcode: 'INSTANCE_CREATE' }>;

// Without the fields that have a default.
export const create: Create = { opcode: 'INSTANCE_CREATE', name: 'web1', osImage: '/a.raw', nics: [{}] };
export const renew: NonNullable<
  paths['/v1/cluster/renew-crypto']['post']['requestBody']
>['content']['application/json'] = {};
export const query: paths['/v1/instance-summaries']['get']['parameters']['query'] = { fields: 'name,status' };

// A response has them.
export function read(instance: Answer<paths['/v1/instances/{name}']['get']>): readonly unknown[] {
  const priority: number = instance.autostart.priority;
  const profiles: string[] = instance.profiles;
  return [priority, profiles, instance.snapshots.length];
}

// @ts-expect-error A request needs a name.
export const nameless: Create = { opcode: 'INSTANCE_CREATE' };
// @ts-expect-error No such operation.
export const unknown: components['schemas']['Opcode'] = { opcode: 'NO_SUCH', name: 'web1' };
`;

test('a client with generated types leaves out defaults of requests and reads those of answers', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'gnt-openapi-'));
  t.after(() => rm(folder, { recursive: true }));
  const bin = join(import.meta.dirname, '../../../../node_modules/.bin');
  await writeFile(join(folder, 'openapi.json'), JSON.stringify(createDocument()));
  await writeFile(join(folder, 'client.ts'), CLIENT);
  const options = { cwd: folder };
  await run(join(bin, 'openapi-typescript'), ['openapi.json', '-o', 'api.d.ts'], options);
  const strict = { strict: true, exactOptionalPropertyTypes: true, types: [], lib: ['es5'] };
  const compilerOptions = { ...strict, noEmit: true, allowImportingTsExtensions: true };
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions }));
  const compiled = run(join(bin, 'tsc'), ['-p', '.'], options);
  await compiled.catch((error: unknown) => assert.fail(inspect(error)));
});
