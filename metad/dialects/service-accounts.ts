import { GOOGLE_SCOPE } from '#shared/contract/cloud-credentials.ts';
import type { ServedView } from '../view/served-view.ts';
import { ACCESS_TOKEN, IDENTITY_TOKEN, type Members, renderGoogleTree } from './google-tree.ts';
import type { Tree } from './tree.ts';

/** Clients use it in place of an email address. */
const DEFAULT = 'default';

/**
 * Returns Google's description of the service accounts of an instance by their names: the default,
 * and the same again by its email address. Empty without an account.
 */
export function describeServiceAccounts(view: Pick<ServedView, 'identity'>): Members {
  const { google } = view.identity ?? {};
  if (google === undefined) return {};
  const email = google.account ?? DEFAULT;
  const account = {
    aliases: [DEFAULT],
    email,
    identity: IDENTITY_TOKEN,
    scopes: [GOOGLE_SCOPE],
    token: ACCESS_TOKEN,
  };
  return { [DEFAULT]: account, [email]: account };
}

/** Renders `instance/service-accounts/`, which needs no other part of Google's tree. */
export function renderServiceAccounts(view: Pick<ServedView, 'identity'>): Tree {
  const accounts = describeServiceAccounts(view);
  return Object.keys(accounts).length === 0 ? new Map() : renderGoogleTree(accounts);
}
