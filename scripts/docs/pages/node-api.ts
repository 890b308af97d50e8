import { z } from 'zod';
import { isUpgrade } from '#shared/contract/endpoint.ts';
import { listEndpoints, type ListedEndpoint } from '#shared/contract/endpoints.ts';
import { opcode } from '#shared/contract/opcode.ts';
import { asSentence } from '../../../cluster-cli/manual/sentence.ts';
import { code, heading, paragraph, terms } from '../../../cluster-cli/manual/page.ts';
import { documented, type DocumentedPage } from '../documented-page.ts';

export function nodeApiPage(): DocumentedPage {
  const endpoints = listEndpoints();
  const routes = endpoints.filter((endpoint) => !isUpgrade(endpoint));
  return documented('node-api.md', 'Node API', {
    name: 'gnt-node-api',
    section: 7,
    purpose: 'HTTP API of gnt-noded on its unix socket',
    blocks: [
      heading('Description'),
      paragraph(
        'gnt-noded serves HTTP with JSON on the unix socket `run/gnt/noded.sock`. The permissions of ' +
          'the socket are the only access control. `GET /v1/openapi.json` returns the whole API with all ' +
          'types as an OpenAPI 3.1 document.',
      ),
      paragraph(
        'A failure has the body `{"code", "message", "hint", "details"}`. See `gnt-errors(7)` for the codes.',
      ),
      code('curl --unix-socket /run/gnt/noded.sock http://localhost/v1/openapi.json', 'sh'),
      ...groupOf(routes).flatMap(([group, members]) => [
        heading(group),
        terms(members.map((route) => [route.key, describe(route)])),
      ]),
      heading('Streams'),
      paragraph('A request with `Upgrade` turns these paths into raw byte streams.'),
      terms(
        endpoints
          .filter(isUpgrade)
          .map(({ key, summary }) => [key, asSentence(summary.replace(`${BETWEEN_NODES}: `, ''))]),
      ),
      heading('Opcodes'),
      paragraph(
        '`POST /v1/jobs` takes one of these operations as JSON. Parameters marked with `*` are required.',
      ),
      terms(listOpcodes()),
    ],
    seeAlso: ['gnt-noded(8)', 'gnt-errors(7)'],
  });
}

const BETWEEN_NODES = 'Between nodes';

/** Groups routes by the first word of the path behind the version. */
function groupOf(
  routes: readonly ListedEndpoint[],
): readonly (readonly [string, ListedEndpoint[]])[] {
  const groups = Map.groupBy(routes, ({ path, summary }) => {
    if (summary.startsWith(BETWEEN_NODES)) return BETWEEN_NODES;
    const word = /^\/v1\/([\w-]+)/.exec(path)?.[1];
    return word === undefined ? 'Other' : `/v1/${word}`;
  });
  return [...groups];
}

function describe({ summary, query, request, answers }: ListedEndpoint): string {
  const parameters = Object.entries(query?.shape ?? {}).map(([name, type]) => {
    const description = descriptionOf(type);
    return `\`${name}\`${description === undefined ? '' : ` (${description})`}`;
  });
  return [
    asSentence(summary.replace(`${BETWEEN_NODES}: `, '')),
    ...(parameters.length === 0 ? [] : [`Query: ${parameters.join(', ')}.`]),
    ...(request === undefined || request instanceof z.ZodType
      ? []
      : [`Body: at most ${request.maxBytes} bytes of \`${request.type}\`.`]),
    `Status: ${Object.keys(answers).join(', ')}.`,
  ].join(' ');
}

/** Returns the description of a schema, or of the schema inside an optional one. */
function descriptionOf(type: unknown): string | undefined {
  if (!(type instanceof z.ZodType)) return undefined;
  if (type.description !== undefined) return type.description;
  return type instanceof z.ZodOptional ? descriptionOf(type.unwrap()) : undefined;
}

const opcodeSchema = z.object({
  properties: z.looseObject({ opcode: z.object({ const: z.string() }) }),
  required: z.array(z.string()).default([]),
});

/** Lists each operation with the names of its parameters. */
function listOpcodes(): readonly (readonly [opcode: string, text: string])[] {
  const { oneOf, anyOf } = z.toJSONSchema(opcode, { io: 'input' });
  return (oneOf ?? anyOf ?? []).map((schema) => {
    const { properties, required } = opcodeSchema.parse(schema);
    const names = Object.keys(properties).filter((name) => name !== 'opcode');
    const shown = names.map((name) => `\`${name}${required.includes(name) ? '*' : ''}\``);
    return [properties.opcode.const, shown.length === 0 ? '' : `${shown.join(', ')}.`];
  });
}
