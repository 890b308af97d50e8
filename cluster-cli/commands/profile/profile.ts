import type { OpcodeInput } from '#shared/contract/opcode.ts';
import type { ProfileInfo } from '#shared/contract/profile.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { suggest } from '#shared/errors/suggest.ts';
import type { Context } from '../../terminal/context.ts';
import { profileFields } from '../../fields/other-fields.ts';
import { type OutlineEntry, renderOutline } from '../../render/outline.ts';
import { type OsParameterOptions, readOsParameters } from '../instance/parse-options.ts';
import { type ListOptions, printFields, printList } from '../list.ts';
import { submitAndWatch, type SubmitOptions } from '../submit.ts';

export async function runProfileList(
  context: Context,
  names: readonly string[],
  options: ListOptions,
): Promise<void> {
  const items = await (await context.client()).ask('GET /v1/profiles');
  const known = items.map(({ name }) => name);
  printList(
    context,
    {
      table: profileFields,
      items,
      nameOf: (profile) => profile.name,
      names,
      notFound: (name) => profileNotFound(name, known),
      toJson: (profile) => ({ ...profile }),
      defaultSort: 'name',
    },
    options,
  );
}

export function runProfileListFields(context: Context, options: { readonly json?: boolean }): void {
  printFields(context, profileFields, options);
}

export async function runProfileInfo(
  context: Context,
  names: readonly string[],
  options: { readonly json?: boolean },
): Promise<void> {
  const all = await (await context.client()).ask('GET /v1/profiles');
  const shown = names.length === 0 ? all : names.map((name) => find(name, all));
  if (options.json) {
    context.print(JSON.stringify(names.length === 1 ? shown[0] : shown, null, 2));
    return;
  }
  context.print(shown.map((profile) => renderOutline([describe(profile)]).join('\n')).join('\n\n'));
}

function find(name: string, all: readonly ProfileInfo[]): ProfileInfo {
  const found = all.find((profile) => profile.name === name);
  if (found !== undefined) return found;
  throw profileNotFound(
    name,
    all.map((profile) => profile.name),
  );
}

function describe(profile: ProfileInfo): OutlineEntry {
  const { name, osParameters, osParametersPrivate, instances } = profile;
  const shown = Object.entries({ ...osParameters, ...osParametersPrivate });
  return {
    key: name,
    children: [
      {
        key: 'parameters',
        children: shown.map(([key, value]) => ({
          key,
          value: Object.hasOwn(osParametersPrivate, key) ? `${value} (private)` : value,
        })),
      },
      { key: 'instances', value: instances.join(', ') },
    ],
  };
}

export interface ProfileModifyOptions
  extends Omit<OsParameterOptions, 'osParametersSecret'>, SubmitOptions {}

export async function runProfileModify(
  context: Context,
  name: string,
  options: ProfileModifyOptions,
): Promise<void> {
  const parameters = readOsParameters(context, options);
  if (Object.keys({ ...parameters.public, ...parameters.private }).length === 0) {
    throw new AppError('USAGE', 'no change given', {
      hint: 'Give -O or --os-parameters-private',
    });
  }
  const opcode: OpcodeInput = {
    ...{ opcode: 'PROFILE_SET_PARAMS', name },
    osParameters: parameters.public,
    osParametersPrivate: parameters.private,
  };
  const job = await submitAndWatch(context, opcode, options);
  if (job !== null && !options.json) context.note(`profile ${name} modified`);
}

export async function runProfileRemove(
  context: Context,
  name: string,
  options: SubmitOptions,
): Promise<void> {
  const job = await submitAndWatch(context, { opcode: 'PROFILE_REMOVE', name }, options);
  if (job !== null && !options.json) context.note(`profile ${name} removed`);
}

function profileNotFound(name: string, known: readonly string[]): AppError {
  const near = suggest(name, known);
  return new AppError('NOT_FOUND', `profile '${name}' does not exist`, {
    hint: near === null ? 'gnt-profile list shows the profiles' : `Did you mean ${near}?`,
    details: { name },
  });
}
