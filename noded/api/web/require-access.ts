import { timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { isUpgrade, type WebAccess } from '#shared/contract/endpoint.ts';
import type { ListedEndpoint } from '#shared/contract/endpoints.ts';
import { ownValue } from '#shared/json/own-value.ts';
import { isWithin } from '#shared/contract/submitter.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { type InstanceRepository, noInstance } from '../../records/instance-repository.ts';
import type { RapiUser } from '../rapi/users-file.ts';
import type { Session } from './sessions.ts';

export const CSRF_HEADER = 'X-Gnt-Csrf';

/** The user of sessions of `gnt-cluster web`, with the rights of root on the node's socket. */
export const ROOT: RapiUser = { name: 'root', role: 'write', scope: null };

/**
 * Refuses endpoints that the user may not call. The scope of a bound user is not checked here.
 * @throws AppError NOT_ALLOWED
 */
export function requireAccess(user: RapiUser, endpoint: ListedEndpoint): void {
  const { key, access, method } = endpoint;
  if (access === undefined || !accessOf(user).includes(access))
    throw new AppError('NOT_ALLOWED', `user '${user.name}' may not use ${key}`);
  const needsWrite = method !== 'GET' || isUpgrade(endpoint);
  if (needsWrite && user.role !== 'write') {
    throw new AppError('NOT_ALLOWED', `user '${user.name}' may only read`, {
      hint: 'Changes need the option write in the users file.',
    });
  }
}

function accessOf(user: RapiUser): readonly WebAccess[] {
  const bound: readonly WebAccess[] = ['instance', 'own', 'all'];
  if (user.scope !== null) return bound;
  return user === ROOT ? ['root', 'cluster', ...bound] : ['cluster', ...bound];
}

/**
 * Refuses instances outside the user's scope, as if they did not exist. Users have rights by full
 * names, so only root may abbreviate them.
 * @throws AppError INSTANCE_NOT_FOUND
 */
export async function requireInstance(
  user: RapiUser,
  name: string,
  instances: Pick<InstanceRepository, 'findByName'>,
): Promise<void> {
  if (user === ROOT) return;
  const instance = await instances.findByName(name);
  if (!isWithin(user.scope, instance)) throw noInstance(name);
}

/** @throws AppError NOT_ALLOWED for a change without the session's CSRF token */
export function requireCsrf(
  { method, headers }: Pick<IncomingMessage, 'method' | 'headers'>,
  { csrf }: Session,
): void {
  if (method === 'GET' || method === 'HEAD') return;
  const given = ownValue(headers, CSRF_HEADER.toLowerCase());
  const expected = Buffer.from(csrf);
  const bytes = Buffer.from(typeof given === 'string' ? given : '');
  if (bytes.length === expected.length && timingSafeEqual(bytes, expected)) return;
  throw new AppError('NOT_ALLOWED', `the header ${CSRF_HEADER} is missing or wrong`, {
    hint: 'GET /session returns its value.',
  });
}
