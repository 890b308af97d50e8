import { CUSTOMIZE_PARAM } from '#shared/contract/boot-env.ts';
import { isReservedTag } from '#shared/contract/identity.ts';
import { DEFAULT_LINK } from '#shared/contract/machine-parameters.ts';
import type { Opcode } from '#shared/contract/opcode.ts';
import {
  fitsLink,
  fitsName,
  isWithin,
  type Scope,
  type Submitter,
} from '#shared/contract/submitter.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { type Excess, findExcess } from './bound-parameters.ts';
import { claimAfter, claimOfNew } from './claim-quota.ts';
import type { RefuseOverQuota } from './refuse-over-quota.ts';
import { namesInstance, traitsOf } from '../jobs/opcode-traits.ts';
import { noInstance, type InstanceRepository } from '../records/instance-repository.ts';

/**
 * Refuses operations that the submitter may not run. Callers hold the job's locks.
 * @throws AppError NOT_ALLOWED, QUOTA_EXCEEDED, INSTANCE_NOT_FOUND
 */
export type Authorize = (opcode: Opcode, submitter: Submitter, job: number) => Promise<void>;

const PARAMETER_FIELDS = ['osParameters', 'osParametersPrivate', 'osParametersSecret'] as const;

/**
 * Creates the policy for users who are bound to instances. They may operate on these instances
 * only. Tags grant permissions: a bound user sets them on a new instance only, and only tags of
 * their own scope. Tags of this program are never among them.
 */
export function createAuthorize(
  instances: Pick<InstanceRepository, 'findByName'>,
  refuseOverQuota: RefuseOverQuota,
): Authorize {
  return async (opcode, submitter, job) => {
    const { user, scope } = submitter;
    if (scope === null) return;
    refuseForeignArchives(opcode, user);
    refuseForeignValues(opcode, user);
    refuseForeignLinks(opcode, user, scope);
    if (opcode.opcode === 'INSTANCE_CREATE') {
      authorizeCreate(opcode, user, scope);
      refuseExcess(findExcess(opcode, {}), user);
      await refuseOverQuota(job, claimOfNew(opcode), submitter);
      return;
    }
    if (!namesInstance(opcode) || traitsOf(opcode).boundUsers !== 'submit') {
      throw notAllowed(
        user,
        `${opcode.opcode} is reserved for users who are not bound to instances`,
      );
    }
    const instance = await instances.findByName(opcode.name);
    // For a bound user, instances outside the scope do not exist.
    if (!isWithin(scope, instance)) throw noInstance(opcode.name);
    refuseExcess(findExcess(opcode, { ...instance.hvparams, ...instance.beparams }), user);
    refuseTagChanges(opcode, user);
    if (opcode.opcode === 'INSTANCE_COPY') refuseReserved(instance.tags, user);
    const isNamed = opcode.opcode === 'INSTANCE_RENAME' || opcode.opcode === 'INSTANCE_COPY';
    if (isNamed && scope.names.length > 0) {
      if (!fitsName(scope, opcode.newName))
        throw notAllowed(user, `the name '${opcode.newName}' does not match the user's instances`);
    }
    const planned = claimAfter(opcode, instance);
    if (planned !== null) await refuseOverQuota(job, planned, submitter);
  };
}

function refuseTagChanges(opcode: Opcode, user: string): void {
  if (opcode.opcode !== 'INSTANCE_SET_PARAMS') return;
  const { tags, addTags = [], removeTags = [] } = opcode;
  if (tags !== undefined || addTags.length > 0 || removeTags.length > 0)
    throw notAllowed(
      user,
      'tags grant permissions: only users who are not bound to instances can change them',
    );
}

/** Refuses tags that give an identity, also by a copy of an instance that has them. */
function refuseReserved(tags: readonly string[], user: string): void {
  const reserved = tags.find(isReservedTag);
  if (reserved !== undefined)
    throw notAllowed(
      user,
      `only users who are not bound to instances can set the tag '${reserved}'`,
    );
}

/**
 * Refuses a param that makes a BootEnv boot from any archive that a node has opened, another
 * tenant's included.
 */
function refuseForeignArchives(opcode: Opcode, user: string): void {
  const asked: Readonly<Record<string, unknown>> = opcode;
  const isGiven = PARAMETER_FIELDS.some((field) => {
    const values = asked[field];
    return typeof values === 'object' && values !== null && Object.hasOwn(values, CUSTOMIZE_PARAM);
  });
  if (isGiven)
    throw notAllowed(
      user,
      `only users who are not bound to instances can set the parameter '${CUSTOMIZE_PARAM}'`,
    );
}

/** Refuses profiles: their private values are shown to the guests that have them. */
function refuseForeignValues(opcode: Opcode, user: string): void {
  if ('profiles' in opcode && opcode.profiles !== undefined && opcode.profiles.length > 0)
    throw notAllowed(user, 'only users who are not bound to instances can assign profiles');
}

/**
 * Refuses foreign bridges: a bridge may lead to a management network or to another tenant's
 * network.
 */
function refuseForeignLinks(opcode: Opcode, user: string, scope: Scope): void {
  const plugs = listPlugs(opcode);
  const bridges = plugs.map(({ link }) => link).filter((link) => link !== DEFAULT_LINK);
  for (const name of [...bridges, ...plugs.map(({ networkName }) => networkName)])
    if (name != null && !fitsLink(scope, name))
      throw notAllowed(user, `a NIC at '${name}' needs the user option link:${name}`);
}

function refuseExcess(excess: Excess | undefined, user: string): void {
  if (excess === undefined) return;
  const { key, value, most } = excess;
  throw notAllowed(user, `${key}=${value} is more than ${most}`);
}

type Plug = Partial<Record<'link' | 'networkName', string | null | undefined>>;

function listPlugs(opcode: Opcode): readonly Plug[] {
  if (opcode.opcode === 'INSTANCE_CREATE') return opcode.nics;
  if (opcode.opcode !== 'INSTANCE_SET_PARAMS') return [];
  return (opcode.nics ?? []).flatMap((change) => {
    if (change.action === 'remove') return [];
    return change.action === 'add' ? [change.nic] : [change.changes];
  });
}

function authorizeCreate(
  { name, tags, importFrom }: Extract<Opcode, { opcode: 'INSTANCE_CREATE' }>,
  user: string,
  scope: Scope,
): void {
  refuseReserved(tags, user);
  const foreign = tags.find((tag) => !scope.tags.includes(tag));
  if (foreign !== undefined)
    throw notAllowed(user, `the tag '${foreign}' does not match the user's instances`);
  if (importFrom !== undefined) throw notAllowed(user, 'exports have no owner');
  if (!isWithin(scope, { name, tags })) {
    throw notAllowed(
      user,
      `neither the name nor a tag of instance '${name}' matches the user's instances`,
    );
  }
}

function notAllowed(user: string, reason: string): AppError {
  return new AppError('NOT_ALLOWED', `user '${user}' is not allowed to do this: ${reason}`, {
    details: { user },
    hint: 'The RAPI users file states which user is bound to which instances.',
  });
}
