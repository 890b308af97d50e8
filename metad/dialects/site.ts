import { assertNever } from '#shared/errors/app-error.ts';
import { ownValue } from '#shared/json/own-value.ts';
import type { Dialect } from '#shared/contract/primitives.ts';
import type { Leaf } from '../view/leaf.ts';
import type { ServedView } from '../view/served-view.ts';
import type { Address } from './address.ts';
import { BOOT_FOLDER } from './boot-paths.ts';
import { EC2_LISTING, renderEc2 } from './ec2.ts';
import { renderGaneti } from './ganeti.ts';
import { type GuestAttributes, renderGce } from './gce.ts';
import { FLAVOR_HEADER } from './metadata-flavor.ts';
import { renderNocloud } from './nocloud.ts';
import { renderOpenstack, renderOpenstackContent } from './openstack.ts';
import { describeServiceAccounts, renderServiceAccounts } from './service-accounts.ts';
import { isDialectServed } from './served-dialects.ts';
import { buildTree, listingOf } from './tree.ts';
import type { Resource, Tree } from './tree.ts';
import { EC2_VERSIONS, GANETI_VERSIONS, GCE_VERSION, OPENSTACK_VERSIONS } from './versions.ts';

export interface SiteState {
  /** Posted by the guest to OpenStack's `password`. */
  readonly password: string;
  /** Written by the guest to Google's `guest-attributes`. */
  readonly guestAttributes?: GuestAttributes;
  /**
   * Further leaves of the ganeti dialect: scripts that Ganeti's own daemon serves without an
   * installation.
   */
  readonly extraLeaves?: ReadonlyMap<string, Leaf>;
}

/** One dialect could not be rendered: its paths answer 500, the others still work. */
export class RenderFailure extends Error {
  readonly dialect: Dialect;
  constructor(dialect: Dialect, cause: unknown) {
    super(`cannot render ${dialect}`, { cause });
    this.dialect = dialect;
  }
}

/** The content of one view. Each dialect is rendered once, on its first request. */
export class Site {
  readonly #view: ServedView;
  readonly #state: SiteState;
  readonly #trees = new Map<TreeName, Tree | RenderFailure>();
  #root: Resource | undefined;

  constructor(view: ServedView, state: SiteState) {
    this.#view = view;
    this.#state = state;
  }

  /** @throws RenderFailure */
  find(address: Address): Resource | undefined {
    if (address.kind === 'root') return (this.#root ??= rootListing(this.#view));
    if (!isServed(this.#view, address)) return undefined;
    if (address.kind === 'identity') return findIdentity(this.#view, address.account);
    if (address.kind === 'versions') return VERSION_LISTINGS[address.dialect];
    const name = nameOfTree(address);
    const tree = this.#tree(name, address.dialect);
    return (
      tree.get(address.path) ?? (name === 'ganeti' ? liveFolderOf(tree, address.path) : undefined)
    );
  }

  #tree(name: TreeName, dialect: Dialect): Tree {
    let tree = this.#trees.get(name);
    if (!tree) {
      try {
        tree = renderTree(name, this.#view, this.#state);
      } catch (error) {
        tree = new RenderFailure(dialect, error);
      }
      this.#trees.set(name, tree);
    }
    if (tree instanceof RenderFailure) throw tree;
    return tree;
  }
}

function isServed(view: ServedView, address: Exclude<Address, { readonly kind: 'root' }>): boolean {
  const isGoogles =
    address.kind === 'service-account' ||
    (address.kind === 'identity' && address.form === 'google');
  return (
    isDialectServed(view, address.dialect) ||
    isBootAddress(address) ||
    (isGoogles && isDialectServed(view, 'gce'))
  );
}

/** DHCP sends firmware to these paths, even if the ganeti dialect is off. */
function isBootAddress(address: Address): boolean {
  if (address.kind !== 'entry' || address.dialect !== 'ganeti') return false;
  return address.path.startsWith(`${BOOT_FOLDER}/`);
}

/** noded knows the files of a mirror or a boot environment's tree. */
function liveFolderOf(tree: Tree, path: string): Resource | undefined {
  const [folder] = /^(mirror\/[^/]+|boot\/machines\/[^/]+\/boot)(?=\/)/.exec(path) ?? [];
  const found = folder === undefined ? undefined : tree.get(folder);
  return found?.kind === 'live' ? found : undefined;
}

type TreeName = Dialect | 'openstack content' | 'service accounts';

function nameOfTree({
  kind,
  dialect,
}: Extract<Address, { readonly kind: 'content' | 'entry' | 'service-account' }>): TreeName {
  switch (kind) {
    case 'content':
      return 'openstack content';
    case 'service-account':
      return 'service accounts';
    case 'entry':
      return dialect;
  }
}

function renderTree(name: TreeName, view: ServedView, state: SiteState): Tree {
  const { password, extraLeaves, guestAttributes = new Map() } = state;
  switch (name) {
    case 'ganeti': {
      const leaves = new Map([...renderGaneti(view), ...(extraLeaves ?? [])]);
      return buildTree(leaves, { endsWithNewline: true });
    }
    case 'ec2':
      return buildTree(renderEc2(view), EC2_LISTING);
    case 'openstack':
      return buildTree(renderOpenstack(view, password), { endsWithNewline: false });
    case 'openstack content':
      return buildTree(renderOpenstackContent(view), { endsWithNewline: false });
    case 'nocloud':
      return buildTree(renderNocloud(view), { endsWithNewline: true });
    case 'gce':
      return renderGce(view, guestAttributes);
    case 'service accounts':
      return renderServiceAccounts(view);
    default:
      return assertNever(name);
  }
}

const IDENTITY_TOKEN: Resource = { kind: 'live', source: 'identity' };

/** @param account name in a path of Google; tokens need no account */
function findIdentity(view: ServedView, account = 'default'): Resource | undefined {
  const isKnown =
    account === 'default' || ownValue(describeServiceAccounts(view), account) !== undefined;
  return isKnown && view.identity ? IDENTITY_TOKEN : undefined;
}

const GANETI_LISTING = listingOf([...GANETI_VERSIONS, 'latest'], true);
/**
 * The folder that is not a version ends in a slash; `latest` stays last, as some clients expect.
 */
const OPENSTACK_LISTING = listingOf([...OPENSTACK_VERSIONS, 'content/', 'latest'], false);

const VERSION_LISTINGS = {
  ganeti: GANETI_LISTING,
  openstack: OPENSTACK_LISTING,
  gce: listingOf([`${GCE_VERSION}/`], true),
};

/** Google's clients for Python and Go recognise the service by a header of this answer. */
function rootListing(view: ServedView): Resource {
  const listing = listingOf(rootEntries(view), true);
  const isGoogles = isDialectServed(view, 'gce') || view.identity?.google !== undefined;
  return isGoogles ? { ...listing, headers: [...listing.headers, ...FLAVOR_HEADER] } : listing;
}

/**
 * EC2 and Nova list versions without a slash, and clients compare whole lines: ohai finds no
 * version otherwise.
 */
function rootEntries(view: ServedView): readonly string[] {
  const entries: Record<Dialect, readonly string[]> = {
    ec2: [...EC2_VERSIONS, 'latest'],
    ganeti: ['ganeti/'],
    gce: ['computeMetadata/'],
    nocloud: ['nocloud/'],
    openstack: ['openstack/'],
  };
  const dialects = (['ec2', 'ganeti', 'gce', 'nocloud', 'openstack'] as const).filter((dialect) =>
    isDialectServed(view, dialect),
  );
  return dialects.flatMap((dialect) => entries[dialect]);
}
