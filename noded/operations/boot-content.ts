import { type BootObject, DEFAULT_IPXE_ID, LOCAL_BOOT_ENV } from '#shared/contract/boot-objects.ts';
import type { BootEnv, BootTemplate } from '#shared/contract/boot-env.ts';
import type { OpcodeOf } from '#shared/contract/opcode.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { ProfileRecord } from '#shared/contract/profile.ts';
import { suggest } from '#shared/errors/suggest.ts';
import { MIB } from '#shared/units/bytes.ts';
import { examineContent, listMissingTemplates, scopeBuiltIn } from '../netboot/examine-content.ts';
import type { JobHandler } from '../jobs/job-handler.ts';
import type { ClusterRepository } from '../records/cluster-repository.ts';
import type { OperationDependencies } from './operation-dependencies.ts';
import { requireRoom, tryChanges } from './profiles.ts';

/** Missing templates that a result lists. */
const MAX_TOLD = 32;
/** Objects of one kind in the store: rendering for an instance reads all of them. */
const MAX_OBJECTS = 1000;
const MAX_TEMPLATE_CHARACTERS = 16 * MIB;

export function setBootContentHandler({
  clusters,
}: Pick<OperationDependencies, 'clusters'>): JobHandler<OpcodeOf<'BOOTENV_SET'>> {
  return {
    prepare: async (given) => {
      refuseTwice(
        'template',
        given.templates.map(({ ID }) => ID),
      );
      const { bootEnvs, templates, params, profiles } = scopeBuiltIn(given);
      refuseTwice(
        'BootEnv',
        bootEnvs.map(({ Name }) => Name),
      );
      refuseTwice(
        'profile',
        profiles.map(({ name }) => name),
      );
      refuseTwice(
        'param',
        params.map(({ Name }) => Name),
      );
      if (bootEnvs.some(({ Name }) => Name === LOCAL_BOOT_ENV)) {
        throw new AppError(
          'BOOTENV_INVALID',
          `the boot environment '${LOCAL_BOOT_ENV}' is built in`,
          {
            hint: 'It boots from the disk. Choose another Name.',
          },
        );
      }
      await examineContent({ bootEnvs, templates, params });
      const [storedBootEnvs, storedTemplates] = await Promise.all([
        clusters.listBootEnvs(),
        clusters.listTemplates(),
      ]);
      const kept = {
        BootEnv: union(storedBootEnvs, bootEnvs, ({ Name }) => Name),
        template: union(storedTemplates, templates, ({ ID }) => ID),
        param: union(await clusters.listParams(), params, ({ Name }) => Name),
      };
      for (const [kind, { length }] of Object.entries(kept)) refuseTooMany(kind, length);
      refuseTooLong([...kept.template, ...kept.BootEnv.flatMap(({ Templates }) => Templates)]);
      const changes = profiles.map(({ name, osParameters }) => ({
        name,
        change: (profile: ProfileRecord) => mergeShown(profile, osParameters),
      }));
      tryChanges(changes, await clusters.listProfiles());
      return async () => {
        await clusters.saveBootContent({ bootEnvs, templates, params }, changes);
        return {
          bootEnvs: bootEnvs.length,
          templates: templates.length,
          params: params.length,
          profiles: profiles.length,
          alsoChanged: listAlsoChanged(storedBootEnvs, storedTemplates, { bootEnvs, templates }),
          missingTemplates: listMissingTemplates(bootEnvs, kept.template).slice(0, MAX_TOLD),
        };
      };
    },
  };
}

/**
 * Merges public values into a profile. Refuses a name with a private value: content must not make
 * it public.
 * @throws AppError BOOTENV_INVALID, VALIDATION
 */
function mergeShown(
  profile: ProfileRecord,
  given: Readonly<Record<string, string>>,
): ProfileRecord {
  const hidden = Object.keys(given).find((name) =>
    Object.hasOwn(profile.osParametersPrivate, name),
  );
  if (hidden !== undefined) {
    throw new AppError(
      'BOOTENV_INVALID',
      `profile '${profile.name}' has a private parameter '${hidden}'`,
      {
        details: { name: profile.name, parameter: hidden },
        hint: `Leave it out of the content, or make it public first: gnt-profile modify -O ${hidden}=… ${profile.name}`,
      },
    );
  }
  return requireRoom({ ...profile, osParameters: { ...profile.osParameters, ...given } });
}

/**
 * @param templates all stored templates, and the templates inside BootEnvs
 * @throws AppError BOOTENV_INVALID
 */
function refuseTooLong(templates: readonly { readonly Contents: string }[]): void {
  const characters = templates.reduce((sum, { Contents }) => sum + Contents.length, 0);
  if (characters <= MAX_TEMPLATE_CHARACTERS) return;
  throw new AppError(
    'BOOTENV_INVALID',
    `all templates together would have ${characters} characters, the limit is ${MAX_TEMPLATE_CHARACTERS}`,
    {
      hint: 'Remove a boot environment with gnt-bootenv remove NAME, a template with gnt-bootenv remove --template ID',
    },
  );
}

function union<T>(there: readonly T[], given: readonly T[], nameOf: (one: T) => string): T[] {
  const names = new Set(given.map(nameOf));
  return [...there.filter((one) => !names.has(nameOf(one))), ...given];
}

/** Lists stored BootEnvs that the request does not have and whose templates it changes. */
function listAlsoChanged(
  storedBootEnvs: readonly BootEnv[],
  storedTemplates: readonly BootTemplate[],
  { bootEnvs, templates }: Pick<OpcodeOf<'BOOTENV_SET'>, 'bootEnvs' | 'templates'>,
): readonly string[] {
  const before = new Map(storedTemplates.map(({ ID, Contents }) => [ID, Contents]));
  const changed = new Set(
    templates.flatMap(({ ID, Contents }) => (before.get(ID) === Contents ? [] : [ID])),
  );
  const given = new Set(bootEnvs.map(({ Name }) => Name));
  return storedBootEnvs
    .filter(({ Name, Templates }) => {
      return !given.has(Name) && Templates.some(({ ID }) => changed.has(ID));
    })
    .map(({ Name }) => Name);
}

/** @throws AppError BOOTENV_INVALID */
function refuseTwice(kind: string, names: readonly string[]): void {
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice === undefined) return;
  throw new AppError('BOOTENV_INVALID', `the ${kind} '${twice}' is given twice`);
}

function refuseTooMany(kind: string, count: number): void {
  if (count <= MAX_OBJECTS) return;
  throw new AppError('BOOTENV_INVALID', `there would be ${count} objects of the kind ${kind}`, {
    hint: `The limit is ${MAX_OBJECTS}. Remove some with gnt-bootenv remove NAME`,
  });
}

export function removeBootObjectHandler({
  clusters,
  instances,
}: Pick<OperationDependencies, 'clusters' | 'instances'>): JobHandler<OpcodeOf<'BOOTENV_REMOVE'>> {
  return {
    prepare: async ({ object }) => {
      await requireObject(object, clusters);
      const refuse = (): Promise<void> => refuseUsed(object, { clusters, instances });
      await refuse();
      return async () => {
        await clusters.removeBootObject(object, refuse);
        return { name: object.name };
      };
    },
  };
}

/** @throws AppError CONFLICT */
async function refuseUsed(
  object: BootObject,
  dependencies: Pick<OperationDependencies, 'clusters' | 'instances'>,
): Promise<void> {
  const users = await usersOf(object, dependencies);
  if (users.length === 0) return;
  throw new AppError('CONFLICT', `${inWords(object)} is used by ${users.join(', ')}`, {
    details: { ...object, users },
    ...(object.kind === 'bootEnv' && {
      hint: `Let an instance boot its disk: gnt-instance modify --bootenv ${LOCAL_BOOT_ENV} NAME`,
    }),
  });
}

/**
 * Lists the users of an object. A param has none: the templates that ask for it are known only when
 * they are rendered.
 */
async function usersOf(
  { kind, name }: BootObject,
  { clusters, instances }: Pick<OperationDependencies, 'clusters' | 'instances'>,
): Promise<readonly string[]> {
  switch (kind) {
    case 'bootEnv':
      return (await instances.list()).filter((one) => one.bootEnv === name).map((one) => one.name);
    case 'template':
      // The built-in template takes the place of a stored one.
      if (name === DEFAULT_IPXE_ID) return [];
      return (await clusters.listBootEnvs())
        .filter(({ Templates }) => Templates.some(({ ID }) => ID === name))
        .map(({ Name }) => `boot environment ${Name}`);
    case 'param':
      return [];
  }
}

function inWords({ kind, name }: BootObject): string {
  return `${kind === 'bootEnv' ? 'BootEnv' : kind} '${name}'`;
}

/** @throws AppError BOOTENV_NOT_FOUND with the nearest name */
async function requireObject(object: BootObject, clusters: ClusterRepository): Promise<void> {
  const known = {
    bootEnv: async () => (await clusters.listBootEnvs()).map(({ Name }) => Name),
    template: async () => (await clusters.listTemplates()).map(({ ID }) => ID),
    param: async () => (await clusters.listParams()).map(({ Name }) => Name),
  };
  const names = await known[object.kind]();
  if (names.includes(object.name)) return;
  const near = suggest(object.name, names);
  throw new AppError('BOOTENV_NOT_FOUND', `there is no ${inWords(object)}`, {
    details: object,
    hint: near === null ? 'List them: gnt-bootenv list' : `Did you mean ${near}?`,
  });
}
