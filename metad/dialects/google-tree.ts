import { FLAVOR_HEADER } from './metadata-flavor.ts';
import { type ContentResource, listingOf, type Resource, textResource, type Tree } from './tree.ts';

/** Served by the node daemon. JSON omits symbols, as Google's recursive answers omit tokens. */
export const ACCESS_TOKEN = Symbol('access token');
export const IDENTITY_TOKEN = Symbol('identity token');

type Value = string | number | symbol | Members | readonly (string | Members)[];
export interface Members {
  readonly [name: string]: Value;
}

const LIVE: ReadonlyMap<unknown, Resource> = new Map([
  [ACCESS_TOKEN, { kind: 'live', source: 'google' }],
  [IDENTITY_TOKEN, { kind: 'live', source: 'identity' }],
]);
/** Levels below these members whose names are users', and keep their spelling in paths. */
const OWN_LEVELS: ReadonlyMap<string, number> = new Map([
  ['attributes', 1],
  ['guestAttributes', 2],
  ['serviceAccounts', 1],
]);
const PATH_NAME = /^[\w.@ -]+$/;
const asLines = (list: readonly unknown[]): string => list.join('\n');
const asJson = (list: readonly unknown[]): string => JSON.stringify(list);
/** Lists that Google serves as one file, and their form as text. */
const LIST_FILES: ReadonlyMap<string, (list: readonly unknown[]) => string> = new Map([
  ['aliases', asLines],
  ['dnsServers', asJson],
  ['scopes', asLines],
  ['tags', asJson],
]);
const TEXT = 'application/text';
const JSON_TYPE = 'application/json';

/**
 * Renders the members of a folder. The paths follow from the answer to `?recursive=true`, as
 * Google's do: `networkInterfaces` becomes `network-interfaces/0/`.
 * @param headers of each answer, besides Google's own
 */
export function renderGoogleTree(members: Members, headers: readonly string[] = []): Tree {
  const tree = new Map<string, Resource>();
  const finish = (resource: ContentResource): ContentResource => ({
    ...resource,
    headers: [...withoutQuotes(resource), ...FLAVOR_HEADER, ...headers],
  });
  addFolder({ tree, finish }, '', members, 0);
  return tree;
}

interface Rendering {
  readonly tree: Map<string, Resource>;
  /** Adds the headers of each answer. */
  readonly finish: (resource: ContentResource) => ContentResource;
}

/**
 * Adds a folder and everything below it.
 * @param ownLevels levels whose names are users', not Google's
 */
function addFolder(rendering: Rendering, path: string, members: Members, ownLevels: number): void {
  const { tree, finish } = rendering;
  const entries: string[] = [];
  for (const [key, value] of Object.entries(members)) {
    const name = ownLevels > 0 ? key : toPathName(key);
    // Other names, such as `a/b` and `ü`, are only in the recursive answer.
    if (!PATH_NAME.test(name)) continue;
    const below = path === '' ? name : `${path}/${name}`;
    const children = childrenOf(key, value);
    entries.push(children === null ? name : `${name}/`);
    if (children === null) tree.set(below, LIVE.get(value) ?? leaf(rendering, key, value));
    else addFolder(rendering, below, children, ownLevels > 0 ? ownLevels - 1 : ownLevelsOf(key));
  }
  const whenRecursive = createRecursive(rendering, path, members);
  tree.set(path, { ...finish(listingOf(entries, true)), whenRecursive });
}

function ownLevelsOf(key: string): number {
  return OWN_LEVELS.get(key) ?? 0;
}

/** @returns null for a value that is no folder; the names of a list's elements are numbers */
function childrenOf(key: string, value: Value): Members | null {
  if (typeof value !== 'object' || (Array.isArray(value) && LIST_FILES.has(key))) return null;
  return Object.fromEntries(Object.entries(value));
}

/** `networkInterfaces` is `network-interfaces` in a path. */
function toPathName(key: string): string {
  return key.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

function leaf({ finish }: Rendering, key: string, value: Value): ContentResource {
  const text =
    typeof value === 'object' ? LIST_FILES.get(key)?.(Object.values(value)) : String(value);
  const whenJson = finish(textResource(JSON.stringify(value), JSON_TYPE));
  return { ...finish(textResource(text ?? '', TEXT)), whenJson };
}

/** A whole folder may contain long documents. Each form is rendered on its first request. */
function createRecursive(
  { tree, finish }: Rendering,
  path: string,
  members: Members,
): NonNullable<ContentResource['whenRecursive']> {
  const known = new Map<'json' | 'text', ContentResource>();
  return (form) => {
    const made =
      known.get(form) ??
      finish(
        form === 'json'
          ? textResource(JSON.stringify(members), JSON_TYPE)
          : textResource(linesBelow(tree, path), TEXT),
      );
    known.set(form, made);
    return made;
  };
}

/** Returns a line with path and value for each file below a folder. */
function linesBelow(tree: Tree, folder: string): string {
  const prefix = folder === '' ? '' : `${folder}/`;
  return [...tree]
    .flatMap(([path, found]) =>
      found.kind === 'content' && !found.isFolder && path.startsWith(prefix)
        ? [`${path.slice(prefix.length)} ${found.body.toString()}\n`]
        : [],
    )
    .join('');
}

/** Clients send the ETag back in a URL without encoding it, so it has no quotes here. */
function withoutQuotes({ headers, etag }: ContentResource): readonly string[] {
  return headers.map((each) => (each === etag ? each.replaceAll('"', '') : each));
}
