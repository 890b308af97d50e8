import { stringify } from 'yaml';
import { z } from 'zod';
import type {
  BootArchiveInfo,
  BootEnvInfo,
  BootObject,
  BootPlanInfo,
} from '#shared/contract/boot-objects.ts';
import type { OpcodeInput } from '#shared/contract/opcode.ts';
import { DEFAULT_IPXE_ID } from '#shared/contract/boot-objects.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { suggest } from '#shared/errors/suggest.ts';
import { bootArchiveFields, bootEnvFields } from '../../fields/other-fields.ts';
import type { Context } from '../../terminal/context.ts';
import { fromHere } from '../../values/host-path.ts';
import { type ListOptions, printFields, printList } from '../list.ts';
import { submitAndWatch, type SubmitOptions } from '../submit.ts';
import { locateFailure } from './locate-content.ts';
import { type BootContent, readBootContent } from './read-content.ts';

const setResult = z.object({
  alsoChanged: z.array(z.string()).default([]),
  missingTemplates: z.array(z.string()).default([]),
});

export async function runCreate(
  context: Context,
  paths: readonly string[],
  options: SubmitOptions,
): Promise<void> {
  const { leftOut, places, ...content } = readBootContent(paths, context.values);
  for (const what of leftOut) context.warn(`ignored: ${what}`);
  const told = describeContent(content);
  if (told === '') {
    throw new AppError('VALIDATION', `nothing to add in ${paths.join(', ')}`, {
      hint: 'Give files with boot environments, templates, params or profiles: gnt-bootenv add --help',
    });
  }
  const opcode: OpcodeInput = { opcode: 'BOOTENV_SET', ...content };
  if (content.templates.some(({ ID }) => ID === DEFAULT_IPXE_ID))
    context.warn(
      `template ${DEFAULT_IPXE_ID} is built in: the given one is only for the BootEnvs given with it`,
    );
  const job = await submitAndWatch(context, opcode, options).catch((error: unknown) => {
    throw locateFailure(error, places);
  });
  if (job === null || options.json) return;
  context.note(told);
  const { alsoChanged = [], missingTemplates = [] } = setResult.safeParse(job.result).data ?? {};
  if (alsoChanged.length > 0)
    context.warn(`BootEnvs that use a replaced template: ${alsoChanged.join(', ')}`);
  for (const missing of missingTemplates) context.warn(`missing template: ${missing}`);
}

function describeContent(content: Omit<BootContent, 'leftOut' | 'places'>): string {
  const lists = [
    ['BootEnv', content.bootEnvs.map(({ Name }) => Name)],
    ['template', content.templates.map(({ ID }) => ID)],
    ['param', content.params.map(({ Name }) => Name)],
    ['profile', content.profiles.map(({ name }) => name)],
  ] as const;
  return lists
    .filter(([, names]) => names.length > 0)
    .map(([kind, names]) =>
      names.length > 4 ? `${names.length} ${kind}s` : `${kind} ${names.join(', ')}`,
    )
    .join('; ');
}

export async function runList(
  context: Context,
  names: readonly string[],
  options: ListOptions,
): Promise<void> {
  const items = await (await context.client()).ask('GET /v1/bootenvs');
  printList(
    context,
    {
      table: bootEnvFields,
      items,
      nameOf: ({ name }: BootEnvInfo) => name,
      names,
      notFound: (name) =>
        notFound(
          { kind: 'bootEnv', name },
          items.map((one) => one.name),
        ),
      toJson: ({ document, ...shown }: BootEnvInfo) => ({ ...shown, document }),
      defaultSort: 'name',
    },
    options,
  );
}

export function runListFields(context: Context, options: { readonly json?: boolean }): void {
  printFields(context, bootEnvFields, options);
}

/** Object of `show` and `destroy`: a BootEnv by its name, or an object of another kind. */
export interface ObjectOptions {
  readonly template?: string;
  readonly param?: string;
}

/** @throws AppError USAGE */
function objectOf(name: string | undefined, { template, param }: ObjectOptions): BootObject {
  const given: BootObject[] = [
    ...(name === undefined ? [] : [{ kind: 'bootEnv', name } as const]),
    ...(template === undefined ? [] : [{ kind: 'template', name: template } as const]),
    ...(param === undefined ? [] : [{ kind: 'param', name: param } as const]),
  ];
  const [object] = given;
  if (object !== undefined && given.length === 1) return object;
  throw new AppError(
    'USAGE',
    'expected the name of a boot environment, or --template ID, or --param NAME',
    {
      hint: 'gnt-bootenv list shows the boot environments',
    },
  );
}

export async function runShow(
  context: Context,
  name: string | undefined,
  options: ObjectOptions & { readonly json?: boolean },
): Promise<void> {
  const object = objectOf(name, options);
  const client = await context.client();
  const show = (value: unknown): void =>
    context.print(
      options.json ? JSON.stringify(value, null, 2) : stringify(value, { lineWidth: 0 }).trimEnd(),
    );
  switch (object.kind) {
    case 'bootEnv':
      return show(find(object, await client.ask('GET /v1/bootenvs'), (one) => one.name).document);
    case 'template': {
      const { id, contents } = find(
        object,
        await client.ask('GET /v1/boot-templates'),
        (one) => one.id,
      );
      if (options.json) return show({ ID: id, Contents: contents });
      return context.print(contents.replace(/\n$/, ''));
    }
    case 'param': {
      const found = find(object, await client.ask('GET /v1/boot-params'), (one) => one.name);
      return show({ Name: found.name, Schema: found.schema });
    }
  }
}

function find<T>(object: BootObject, all: readonly T[], nameOf: (one: T) => string): T {
  const found = all.find((one) => nameOf(one) === object.name);
  if (found !== undefined) return found;
  throw notFound(object, all.map(nameOf));
}

function notFound({ kind, name }: BootObject, known: readonly string[]): AppError {
  const near = suggest(name, known);
  const what = kind === 'bootEnv' ? 'boot environment' : kind;
  return new AppError('BOOTENV_NOT_FOUND', `${what} '${name}' does not exist`, {
    details: { name },
    hint: near === null ? 'gnt-bootenv list shows the boot environments' : `Did you mean ${near}?`,
  });
}

export async function runDestroy(
  context: Context,
  name: string | undefined,
  options: ObjectOptions & SubmitOptions,
): Promise<void> {
  const object = objectOf(name, options);
  const job = await submitAndWatch(context, { opcode: 'BOOTENV_REMOVE', object }, options);
  if (job !== null && !options.json) context.note(`${object.name} removed`);
}

export async function runRender(
  context: Context,
  name: string,
  instance: string,
  options: { readonly json?: boolean },
): Promise<void> {
  const client = await context.client();
  const query = { bootenv: name };
  const plan = await client.ask('GET /v1/instances/{name}/boot-plan', { name: instance, query });
  if (options.json) return context.print(JSON.stringify(plan, null, 2));
  for (const what of plan.leftOut) context.warn(`ignored: ${what}`);
  if (plan.constants.length > 0) {
    const members = plan.constants.join(', ');
    context.warn(`constant values for ${members}: there is no API of dr-provision`);
  }
  context.note(describePlan(plan));
  for (const { path, contents, lostSecrets } of plan.files) {
    context.print(`==> ${path} <==`);
    context.print(contents ?? `(needs the lost value of ${lostSecrets.join(', ')})`);
  }
}

function describePlan({ source, kernel, initrds }: BootPlanInfo): string {
  if (source === null) return 'loads nothing';
  const from = source.kind === 'archive' ? `the archive ${source.isoFile}` : source.url;
  return `${[kernel, ...initrds].filter((path) => path !== null).join(', ') || 'files'} from ${from}`;
}

export async function runUploadIso(
  context: Context,
  bootEnv: string,
  file: string | undefined,
  options: SubmitOptions,
): Promise<void> {
  const source = file === undefined ? {} : { source: fromHere(file) };
  const opcode: OpcodeInput = { opcode: 'BOOTENV_UPLOAD_ISO', bootEnv, ...source };
  const job = await submitAndWatch(context, opcode, options);
  if (job !== null && !options.json) context.note(`archive of ${bootEnv} unpacked on this node`);
}

export async function runListIsos(
  context: Context,
  names: readonly string[],
  options: ListOptions,
): Promise<void> {
  const items = await (await context.client()).ask('GET /v1/boot-archives');
  printList(
    context,
    {
      table: bootArchiveFields,
      items,
      nameOf: ({ isoFile }: BootArchiveInfo) => isoFile,
      names,
      notFound: (name) =>
        new AppError('NOT_FOUND', `archive '${name}' is not unpacked on this node`, {
          details: { name },
          hint: 'gnt-bootenv list-isos shows the archives',
        }),
      defaultSort: 'name',
    },
    options,
  );
}

export async function runDestroyIso(
  context: Context,
  isoFile: string,
  options: SubmitOptions,
): Promise<void> {
  const job = await submitAndWatch(context, { opcode: 'BOOTENV_DESTROY_ISO', isoFile }, options);
  if (job !== null && !options.json) context.note(`archive ${isoFile} removed from this node`);
}
