import type { Dialect } from '#shared/contract/primitives.ts';
import {
  EC2_VERSIONS,
  GANETI_VERSIONS,
  GCE_VERSION,
  OPENSTACK_VERSIONS,
  isVersionServed,
} from './versions.ts';

export type Address =
  | { readonly kind: 'root' }
  | { readonly kind: 'versions'; readonly dialect: 'ganeti' | 'openstack' | 'gce' }
  /** Below `/openstack/content/`, which belongs to no version; '' is that folder. */
  | { readonly kind: 'content'; readonly dialect: 'openstack'; readonly path: string }
  /**
   * An identity token in the form of a cloud. It is in no listing: clients that crawl the EC2 tree
   * would read it without an audience.
   */
  | {
      readonly kind: 'identity';
      readonly dialect: 'ganeti' | 'ec2';
      readonly form: 'google' | 'aud';
      /** Name of Google's service account. */
      readonly account?: string;
    }
  /** `path` is below Google's folder of service accounts; '' is that folder. */
  | { readonly kind: 'service-account'; readonly dialect: 'ganeti'; readonly path: string }
  /** `path` is below the version folder, without leading or trailing slash; '' is that folder. */
  | { readonly kind: 'entry'; readonly dialect: Dialect; readonly path: string };

const SERVICE_ACCOUNTS = 'computeMetadata/v1/instance/service-accounts';

/**
 * @param path decoded, without leading and trailing slash
 * @returns undefined for an unknown version
 */
export function resolveAddress(path: string): Address | undefined {
  if (path === '') return { kind: 'root' };
  if (path === SERVICE_ACCOUNTS || path.startsWith(`${SERVICE_ACCOUNTS}/`))
    return serviceAccount(path.slice(SERVICE_ACCOUNTS.length + 1));
  const [first, rest] = splitFirst(path);
  if (first === 'computeMetadata') return gce(rest);
  if (first === 'nocloud') return { kind: 'entry', dialect: 'nocloud', path: rest ?? '' };
  if (first === 'ganeti') return versioned('ganeti', GANETI_VERSIONS, rest);
  if (first === 'openstack' && rest !== undefined && /^content(\/|$)/.test(rest))
    return { kind: 'content', dialect: 'openstack', path: splitFirst(rest)[1] ?? '' };
  if (first === 'openstack') return versioned('openstack', OPENSTACK_VERSIONS, rest);
  return ec2(...splitFirst(withoutEmptySegments(path)));
}

/**
 * Amazon's own clients request `//latest/…` (@aws-sdk/ec2-metadata-service) and
 * `/latest//meta-data/…` (ec2-metadata).
 */
function withoutEmptySegments(path: string): string {
  return path.replaceAll(/\/+/g, '/').replace(/^\//, '');
}

function ec2(version: string, path: string | undefined): Address | undefined {
  if (!isVersionServed(version, EC2_VERSIONS)) return undefined;
  if (path === 'meta-data/identity') return { kind: 'identity', dialect: 'ec2', form: 'aud' };
  return { kind: 'entry', dialect: 'ec2', path: withoutKeyName(path ?? '') };
}

/** Clients write folders with and without a slash at the end. */
function gce(rest: string | undefined): Address | undefined {
  if (rest === undefined) return { kind: 'versions', dialect: 'gce' };
  const [version, path = ''] = splitFirst(rest);
  return version === GCE_VERSION ? { kind: 'entry', dialect: 'gce', path } : undefined;
}

function serviceAccount(path: string): Address {
  const [, account] = /^([^/]+)\/identity$/.exec(path) ?? [];
  return account === undefined
    ? { kind: 'service-account', dialect: 'ganeti', path }
    : { kind: 'identity', dialect: 'ganeti', form: 'google', account };
}

function versioned(
  dialect: 'ganeti' | 'openstack',
  versions: readonly string[],
  rest: string | undefined,
): Address | undefined {
  if (rest === undefined) return { kind: 'versions', dialect };
  const [version, path] = splitFirst(rest);
  if (!isVersionServed(version, versions)) return undefined;
  return { kind: 'entry', dialect, path: path ?? '' };
}

/** `public-keys/` lists `0=name`. A request for that listed entry gets key 0. */
function withoutKeyName(path: string): string {
  return path.replace(/^(meta-data\/public-keys\/(\d+))=key-\2(?=\/|$)/, '$1');
}

function splitFirst(path: string): [string, string | undefined] {
  const slash = path.indexOf('/');
  return slash === -1 ? [path, undefined] : [path.slice(0, slash), path.slice(slash + 1)];
}
