import { GOOGLE_SCOPE } from '#shared/contract/cloud-credentials.ts';
import { ownValue } from '#shared/json/own-value.ts';
import type { ServedView } from '../view/served-view.ts';
import { FLAVOR_HEADER } from './metadata-flavor.ts';
import { type ContentResource, listingOf, type Resource, textResource } from './tree.ts';

interface ServiceAccount {
  readonly aliases: readonly string[];
  readonly email: string;
  readonly scopes: readonly string[];
}

/** Clients use it in place of an email address. */
const DEFAULT = 'default';
const TOKEN: Resource = { kind: 'live', source: 'google' };

/**
 * Returns Google's description of the service accounts of an instance by their names: the default,
 * and the same again by its email address. Empty without an account.
 */
export function describeServiceAccounts(
  view: Pick<ServedView, 'identity'>,
): Readonly<Record<string, ServiceAccount>> {
  const { google } = view.identity ?? {};
  if (google === undefined) return {};
  const email = google.account ?? DEFAULT;
  const account = { aliases: [DEFAULT], email, scopes: [GOOGLE_SCOPE] };
  return { [DEFAULT]: account, [email]: account };
}

/** @param path below `service-accounts/`; '' is that folder */
export function findServiceAccount(
  view: Pick<ServedView, 'identity'>,
  path: string,
): Resource | undefined {
  const accounts = describeServiceAccounts(view);
  const names = Object.keys(accounts);
  if (names.length === 0) return undefined;
  if (path === '')
    return folder(
      names.map((name) => `${name}/`),
      accounts,
    );
  const [name = '', leaf, ...rest] = path.split('/');
  const account = ownValue(accounts, name);
  if (account === undefined || rest.length > 0) return undefined;
  switch (leaf) {
    case undefined:
      return folder(['aliases', 'email', 'identity', 'scopes', 'token'], account);
    case 'aliases':
      return flavored(textResource(DEFAULT));
    case 'email':
      return flavored(textResource(account.email));
    case 'scopes':
      return flavored(textResource(account.scopes.join('\n')));
    case 'token':
      return TOKEN;
    default:
      return undefined;
  }
}

function folder(entries: readonly string[], whole: object): ContentResource {
  const json = textResource(JSON.stringify(whole), 'application/json');
  return { ...flavored(listingOf(entries, true)), whenRecursive: flavored(json) };
}

function flavored(resource: ContentResource): ContentResource {
  return { ...resource, headers: [...resource.headers, ...FLAVOR_HEADER] };
}
