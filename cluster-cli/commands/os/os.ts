import type { OsInfo, OsTrust } from '#shared/contract/api.ts';
import type { OpcodeInput } from '#shared/contract/opcode.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { Context } from '../../terminal/context.ts';
import { osFields } from '../../fields/other-fields.ts';
import { formatTime } from '../../render/format.ts';
import { type OutlineEntry, renderOutline } from '../../render/outline.ts';
import { suggest } from '#shared/errors/suggest.ts';
import { type OsParameterOptions, readOsParameters } from '../instance/parse-options.ts';
import { type ListOptions, printFields, printList } from '../list.ts';
import { submitAndWatch, type SubmitOptions } from '../submit.ts';

/** Each variant is an OS of its own in a list, as in Ganeti. */
function withVariants(os: OsInfo): readonly (OsInfo & { readonly listed: string })[] {
  if (os.variants.length === 0) return [{ ...os, listed: os.name }];
  return os.variants.map((variant) => ({ ...os, listed: `${os.name}+${variant}` }));
}

/** `gnt-os list`: what can be installed; hidden and blacklisted ones with `--all`. */
export async function runOsList(
  context: Context,
  names: readonly string[],
  options: ListOptions & { readonly all?: boolean },
): Promise<void> {
  const client = await context.client();
  const all = await client.operatingSystems();
  const shown =
    options.all || names.length > 0
      ? all
      : all.filter((os) => os.valid && !os.hidden && !os.blacklisted);
  const items = shown.flatMap(withVariants);
  printList(
    context,
    {
      table: osFields,
      items: options.json ? shown.map((os) => ({ ...os, listed: os.name })) : items,
      nameOf: (os) => os.listed,
      names,
      notFound: (name) =>
        osNotFound(
          name,
          all.map((os) => os.name),
        ),
      toJson: (os) => ({ ...os, listed: undefined }),
      defaultSort: 'name',
    },
    options,
  );
}

export function runOsListFields(context: Context, options: { readonly json?: boolean }): void {
  printFields(context, osFields, options);
}

/**
 * `gnt-os diagnose`: every definition that was found, and what is wrong with it. Exit 1 when one is
 * not valid.
 */
export async function runOsDiagnose(
  context: Context,
  options: { readonly json?: boolean },
): Promise<void> {
  const client = await context.client();
  const [all, node] = await Promise.all([client.operatingSystems(), client.node()]);
  if (options.json) context.print(JSON.stringify(all, null, 2));
  else for (const os of all) context.print(diagnose(os, node.name).join('\n'));
  if (!options.json && all.length === 0) context.note('no OS definition was found');
  if (all.some((os) => !os.valid)) context.setExitStatus(1);
}

function diagnose(os: OsInfo, node: string): readonly string[] {
  const flags = [
    trustWord(os.trust),
    ...(os.hidden ? ['hidden'] : []),
    ...(os.blacklisted ? ['blacklisted'] : []),
  ].map((flag) => `[${flag}]`);
  const details = os.valid
    ? [
        `path: ${os.path ?? '-'}`,
        ...(os.variants.length > 0 ? [`variants: ${os.variants.join(', ')}`] : []),
        ...(os.parameters.length > 0
          ? [`parameters: ${os.parameters.map((each) => each.name).join(', ')}`]
          : []),
        ...(os.hostScripts.length > 0 ? [`on the host: ${os.hostScripts.join(', ')}`] : []),
        ...(os.applianceScripts.length > 0
          ? [`in the appliance: ${os.applianceScripts.join(', ')}`]
          : []),
      ]
    : [`path: ${os.path ?? '-'}`, `problem: ${os.problem ?? 'unknown'}`];
  return [
    `OS: ${os.name} [global status: ${os.valid ? 'valid' : 'invalid'}] ${flags.join(' ')}`,
    ...renderOutline(
      [
        {
          key: `Node ${node}`,
          value: os.valid ? 'VALID' : 'INVALID',
          children: details.map((text) => splitDetail(text)),
        },
      ],
      1,
    ),
    '',
  ];
}

function splitDetail(text: string): OutlineEntry {
  const colon = text.indexOf(': ');
  return { key: text.slice(0, colon), value: text.slice(colon + 2) };
}

/** `gnt-os info [OS…]`. */
export async function runOsInfo(
  context: Context,
  names: readonly string[],
  options: { readonly json?: boolean },
): Promise<void> {
  const client = await context.client();
  const infos =
    names.length === 0
      ? await client.operatingSystems()
      : await Promise.all(names.map((name) => client.operatingSystem(name)));
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
      { key: 'API versions', value: os.apiVersions.join(', ') },
      { key: 'variants', value: os.variants.join(', ') },
      { key: 'scripts on the host', value: os.hostScripts.join(', ') },
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
    value: visibility === 'public' ? value : `<redacted> (${visibility})`,
  }));
}

function trustWord({ state }: OsTrust): string {
  return state === 'changed'
    ? 'changed since it was trusted'
    : state === 'trusted'
      ? state
      : 'untrusted';
}

function describeTrust({ name, trust }: Pick<OsInfo, 'name' | 'trust'>): string {
  const since = trust.trustedAtMs === null ? '' : formatTime(trust.trustedAtMs);
  switch (trust.state) {
    case 'trusted':
      return `yes, as it was on ${since}`;
    case 'changed':
      return `no: changed since it was trusted on ${since}; gnt-os trust ${name} trusts what it is now`;
    case 'by-name':
      return `no: its name was trusted, and no content; gnt-os trust ${name} trusts what it is now`;
    case 'untrusted':
      return 'no';
  }
}

export interface OsModifyOptions extends OsParameterOptions, SubmitOptions {
  readonly trusted?: boolean;
  readonly hidden?: boolean;
  readonly blacklisted?: boolean;
}

/** `gnt-os modify OS`; the definition need not exist. @throws AppError, CommandFailure */
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
  };
  const count = [parameters.public, parameters.private, switches].flatMap(Object.keys).length;
  if (count === 0) {
    throw new AppError(
      'USAGE',
      'At least one of OS parameters or hypervisor parameters must be passed',
      {
        hint: 'or one of --trusted, --hidden, --blacklisted with yes or no',
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
  if (job !== null && !options.json) context.note(`OS ${name} is modified`);
}

function osNotFound(name: string, known: readonly string[]): AppError {
  const near = suggest(name, known);
  return new AppError('OS_NOT_FOUND', `OS '${name}' is not defined on this node`, {
    hint: near ? `did you mean ${near}?` : 'gnt-os diagnose shows what was found, and where',
    details: { name },
  });
}
