import type { NodeOs, OsInfo, OsTrust } from '#shared/contract/api.ts';
import type { OpcodeInput } from '#shared/contract/opcode.ts';
import { isOffered, listVariants } from '#shared/contract/os-variants.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { Context } from '../../terminal/context.ts';
import { osFields } from '../../fields/other-fields.ts';
import { formatTime } from '../../render/format.ts';
import { type OutlineEntry, renderOutline } from '../../render/outline.ts';
import { suggest } from '#shared/errors/suggest.ts';
import { orUnset } from '../instance/parse-documents.ts';
import { type OsParameterOptions, readOsParameters } from '../instance/parse-options.ts';
import { type ListOptions, printFields, printList } from '../list.ts';
import { submitAndWatch, type SubmitOptions } from '../submit.ts';
import { diagnoseAll, findDiffering, listFound, type OsDiagnosis } from './diagnose.ts';

/**
 * Prints the OSes that can be installed; with `--all` hidden and blacklisted ones too. If nodes
 * differ, a list with titles has one more column. Lists for scripts do not.
 */
export async function runOsList(
  context: Context,
  names: readonly string[],
  options: ListOptions & { readonly all?: boolean },
): Promise<void> {
  const client = await context.client();
  const [all, nodes] = await Promise.all([
    client.ask('GET /v1/os'),
    asksNodes(options) ? client.ask('GET /v1/os-of-nodes') : [],
  ]);
  const differing = findDiffering(all, nodes);
  const isAll = options.all === true || names.length > 0;
  const items = all
    .flatMap(listVariants)
    .filter((os) => isAll || isOffered(os))
    .map((os) => ({ ...os, differing: differing.get(os.name) ?? [] }));
  const isShown = options.output === undefined && items.some((os) => os.differing.length > 0);
  const shown = isAll ? all : all.filter((os) => items.some(({ name }) => name === os.name));
  printList(
    context,
    {
      table: osFields,
      items: options.json
        ? shown.map((os) => ({ ...os, listed: os.name, differing: differing.get(os.name) ?? [] }))
        : items,
      nameOf: (os) => os.listed,
      names,
      notFound: (name) =>
        osNotFound(
          name,
          all.map((os) => os.name),
        ),
      toJson: (os) => ({ ...os, listed: undefined, differing: undefined }),
      defaultSort: 'name',
    },
    isShown ? { ...options, output: '+differing' } : options,
  );
  tellSilent(context, nodes);
}

/** Tells whether the list needs other nodes. Scripts that read names do not wait for them. */
function asksNodes({ output, headers, json, filter, sort }: ListOptions): boolean {
  if (json !== true && output === undefined && headers) return true;
  return [output, filter, sort].some((text) => text?.includes('differing'));
}

function tellSilent(context: Context, nodes: readonly NodeOs[]): void {
  for (const node of nodes)
    if ('silent' in node) context.warn(`node ${node.node} does not respond: ${node.silent}`);
}

export function runOsListFields(context: Context, options: { readonly json?: boolean }): void {
  printFields(context, osFields, options);
}

/**
 * Prints every definition of every node, with its problems. Sets exit status 1 if a definition is
 * invalid, or missing on a node.
 */
export async function runOsDiagnose(
  context: Context,
  options: { readonly json?: boolean },
): Promise<void> {
  const client = await context.client();
  const nodes = await client.ask('GET /v1/os-of-nodes');
  const found = listFound(nodes);
  const diagnoses = diagnoseAll(nodes);
  if (options.json)
    context.print(
      JSON.stringify(
        found.map(({ node, os }) => ({ node, ...os })),
        null,
        2,
      ),
    );
  else for (const diagnosis of diagnoses) context.print(renderDiagnosis(diagnosis).join('\n'));
  tellSilent(context, nodes);
  if (!options.json && diagnoses.length === 0) context.note('no OS definitions');
  const isWhole = nodes.every((node) => !('silent' in node));
  if (!isWhole || diagnoses.some(({ status }) => status !== 'valid')) context.setExitStatus(1);
}

function renderDiagnosis({ name, status, isSame, found, missing }: OsDiagnosis): readonly string[] {
  const flags = [
    ...new Set(found.map(({ os }) => trustWord(os.trust))),
    ...(found.some(({ os }) => os.hidden) ? ['hidden'] : []),
    ...(found.some(({ os }) => os.blacklisted) ? ['blacklisted'] : []),
    ...(isSame ? [] : ['differs between nodes']),
  ].map((flag) => `[${flag}]`);
  return [
    `OS: ${name} [global status: ${status}] ${flags.join(' ')}`,
    ...renderOutline(
      [
        ...found.map(({ node, os }) => ({
          key: `Node ${node}`,
          value: os.valid ? 'VALID' : 'INVALID',
          children: detailsOf(os, isSame),
        })),
        ...missing.map((node) => ({ key: `Node ${node}`, value: 'MISSING' })),
      ],
      1,
    ),
    '',
  ];
}

function detailsOf(os: OsInfo, isSame: boolean): readonly OutlineEntry[] {
  const path = { key: 'path', value: os.path };
  if (!os.valid) return [path, { key: 'problem', value: os.problem ?? 'unknown' }];
  const lists = [
    { key: 'variants', value: os.variants.join(', ') },
    { key: 'parameters', value: os.parameters.map((each) => each.name).join(', ') },
    { key: 'on the node', value: os.hostScripts.join(', ') },
    { key: 'in the appliance', value: os.applianceScripts.join(', ') },
  ].filter(({ value }) => value !== '');
  return [path, ...lists, ...(isSame ? [] : [{ key: 'digest', value: os.trust.digest }])];
}

export async function runOsInfo(
  context: Context,
  names: readonly string[],
  options: { readonly json?: boolean },
): Promise<void> {
  const client = await context.client();
  const infos =
    names.length === 0
      ? await client.ask('GET /v1/os')
      : await Promise.all(names.map((name) => client.ask('GET /v1/os/{name}', { name })));
  if (options.json) {
    context.print(JSON.stringify(names.length === 1 ? infos[0] : infos, null, 2));
    return;
  }
  context.print(infos.map((os) => renderOutline([describeOs(os)]).join('\n')).join('\n\n'));
}

function describeOs(os: OsInfo): OutlineEntry {
  return {
    key: os.name,
    children: [
      { key: 'path', value: os.path },
      { key: 'valid', value: os.valid },
      ...(os.problem === null ? [] : [{ key: 'problem', value: os.problem }]),
      { key: 'trusted', value: describeTrust(os) },
      { key: 'digest', value: os.trust.digest },
      { key: 'hidden', value: os.hidden },
      { key: 'blacklisted', value: os.blacklisted },
      { key: 'safe install', value: os.safeInstall },
      { key: 'appliance', value: os.appliance ?? null },
      { key: 'API versions', value: os.apiVersions.join(', ') },
      { key: 'variants', value: os.variants.join(', ') },
      { key: 'scripts on the node', value: os.hostScripts.join(', ') },
      { key: 'scripts in the appliance', value: os.applianceScripts.join(', ') },
      {
        key: 'parameters',
        children: os.parameters.map(({ name, description }) => ({ key: name, value: description })),
      },
      { key: 'defaults', children: describeDefaults(os.defaults) },
      {
        key: 'settings of variants',
        children: Object.entries(os.variantSettings).map(([variant, own]) => ({
          key: variant,
          children: [
            {
              key: 'trusted',
              value: describeTrust({ name: `${os.name}+${variant}`, trust: own.trust }),
            },
            { key: 'hidden', value: own.hidden },
            { key: 'blacklisted', value: own.blacklisted },
            { key: 'safe install', value: own.safeInstall },
            { key: 'appliance', value: own.appliance ?? null },
            { key: 'defaults', children: describeDefaults(own.defaults) },
          ],
        })),
      },
    ],
  };
}

function describeDefaults(defaults: OsInfo['defaults']): readonly OutlineEntry[] {
  return Object.entries(defaults).map(([name, { value, visibility }]) => ({
    key: name,
    value: visibility === 'public' ? value : `${value} (${visibility})`,
  }));
}

function trustWord({ state }: OsTrust): string {
  return state === 'changed' ? 'changed since trusted' : state === 'trusted' ? state : 'untrusted';
}

function describeTrust({ name, trust }: Pick<OsInfo, 'name' | 'trust'>): string {
  const since = trust.trustedAtMs === null ? '' : formatTime(trust.trustedAtMs);
  switch (trust.state) {
    case 'trusted':
      return `yes, since ${since}`;
    case 'changed':
      return `no: changed since it was trusted on ${since}; trust it again: gnt-os trust ${name}`;
    case 'by-name':
      return `no: only its name was trusted; trust its content: gnt-os trust ${name}`;
    case 'untrusted':
      return 'no';
  }
}

export interface OsModifyOptions extends OsParameterOptions, SubmitOptions {
  readonly trusted?: boolean;
  readonly hidden?: boolean;
  readonly blacklisted?: boolean;
  readonly safeInstall?: 'optional' | 'required';
  readonly appliance?: string;
}

/** Changes settings of an OS; the definition need not exist. */
export async function runOsModify(
  context: Context,
  name: string,
  options: OsModifyOptions,
): Promise<void> {
  const parameters = readOsParameters(context, options);
  const switches = {
    ...(options.trusted !== undefined && { trusted: options.trusted }),
    ...(options.hidden !== undefined && { hidden: options.hidden }),
    ...(options.blacklisted !== undefined && { blacklisted: options.blacklisted }),
    ...(options.safeInstall !== undefined && { safeInstall: options.safeInstall }),
    ...(options.appliance !== undefined && { appliance: orUnset(options.appliance) }),
  };
  const count = [parameters.public, parameters.private, switches].flatMap(Object.keys).length;
  if (count === 0) {
    throw new AppError(
      'USAGE',
      'At least one of OS parameters or hypervisor parameters must be passed',
      {
        hint: 'Give -O, --trusted, --hidden, --blacklisted, --safe-install or --appliance',
      },
    );
  }
  const opcode: OpcodeInput = {
    opcode: 'OS_SET_PARAMS',
    name,
    ...switches,
    osParameters: parameters.public,
    osParametersPrivate: parameters.private,
  };
  const job = await submitAndWatch(context, opcode, options);
  if (job !== null && !options.json) context.note(`OS ${name} modified`);
}

function osNotFound(name: string, known: readonly string[]): AppError {
  const near = suggest(name, known);
  return new AppError('OS_NOT_FOUND', `OS '${name}' is not defined on this node`, {
    hint: near ? `Did you mean ${near}?` : 'gnt-os diagnose shows the OS definitions of all nodes',
    details: { name },
  });
}
