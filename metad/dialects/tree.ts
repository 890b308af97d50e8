import { createHash } from 'node:crypto';
import type { FixedLeaf, Leaf, LiveLeaf } from '../view/leaf.ts';

/** The result of a look-up. Header lists are ready for writeHead, names and values in turn. */
export type Resource = ContentResource | LiveLeaf;

export interface ContentResource {
  readonly kind: 'content';
  readonly status: 200 | 410;
  readonly body: Buffer;
  /**
   * The body as latin1, one character per byte, unless it is big: headers and such a string leave
   * in one plain write.
   */
  readonly text: string | null;
  readonly etag: string;
  readonly headers: readonly string[];
  readonly isFolder: boolean;
  /** Needs the proof of an installation's agent. */
  readonly isForAgent?: boolean;
  readonly whenPartial?: ContentResource;
  /** A value as JSON, for `?alt=json`. */
  readonly whenJson?: ContentResource;
  /** Returns the whole folder, for `?recursive=true`. */
  readonly whenRecursive?: (form: 'json' | 'text') => ContentResource;
}

export interface ListingStyle {
  /** Formats a child of a folder; by default `isFolder` children end in a slash. */
  readonly entry?: (folder: string, name: string, isFolder: boolean) => string;
  /** EC2's and OpenStack's clients expect none, a shell's `while read` does. */
  readonly endsWithNewline: boolean;
}

/** All paths of one dialect, without leading or trailing slash; '' is its top folder. */
export type Tree = ReadonlyMap<string, Resource>;

/**
 * Builds the resources of a dialect. Listings are derived, so that every listed path can be read
 * and the reverse.
 */
export function buildTree(leaves: ReadonlyMap<string, Leaf>, style: ListingStyle): Tree {
  const tree = new Map<string, Resource>();
  const folders = new Map([['', new Map<string, boolean>()]]);
  for (const [path, leaf] of leaves) {
    tree.set(path, leaf.kind === 'live' ? leaf : sharedContentOf(leaf));
    addToFolders(folders, path);
  }
  for (const [path, children] of folders) {
    // A live folder lists itself, and leaves below it take precedence over its files. An OS
    // parameter may have the path of a folder, which then shows the parameter.
    if (!tree.has(path)) {
      const lines = linesOf(path, children, { leaves, folders, style });
      tree.set(path, listingOf(lines, style.endsWithNewline));
    }
  }
  return tree;
}

/**
 * Longest body that is also kept as a string, in bytes. Copying a longer one costs more than a
 * second buffer in the write.
 */
const MAX_TEXT_BYTES = 16 * 1024;

export function listingOf(entries: readonly string[], endsWithNewline: boolean): ContentResource {
  const text = entries.join('\n');
  return content(
    200,
    Buffer.from(endsWithNewline && text !== '' ? `${text}\n` : text),
    'text/plain; charset=utf-8',
    false,
    true,
  );
}

export function textResource(
  text: string,
  contentType = 'text/plain; charset=utf-8',
): ContentResource {
  return content(200, Buffer.from(text), contentType, false, false);
}

function addToFolders(folders: Map<string, Map<string, boolean>>, path: string): void {
  const segments = path.split('/');
  for (let depth = 0; depth < segments.length; depth++) {
    const folder = segments.slice(0, depth).join('/');
    let children = folders.get(folder);
    if (!children) folders.set(folder, (children = new Map<string, boolean>()));
    const name = segments[depth] ?? '';
    const isFolder = depth < segments.length - 1;
    children.set(name, isFolder || children.get(name) === true);
  }
}

interface Listed {
  readonly leaves: ReadonlyMap<string, Leaf>;
  readonly folders: ReadonlyMap<string, ReadonlyMap<string, boolean>>;
  readonly style: ListingStyle;
}

/**
 * Returns the lines of a folder. A folder with the path of a leaf cannot be read, so the folder
 * above lists its entries by their paths.
 */
function linesOf(
  path: string,
  children: ReadonlyMap<string, boolean>,
  listed: Listed,
): readonly string[] {
  const { leaves, folders, style } = listed;
  const entry = style.entry ?? ((_folder, name, isFolder) => (isFolder ? `${name}/` : name));
  return [...children]
    .sort(([a], [b]) => byNumberThenText(a, b))
    .flatMap(([name, isFolder]) => {
      const below = path === '' ? name : `${path}/${name}`;
      const leaf = leaves.get(below);
      if (!isFolder || leaf === undefined || leaf.kind === 'live')
        return [entry(path, name, isFolder)];
      const inner = linesOf(below, folders.get(below) ?? new Map<string, boolean>(), listed);
      return [entry(path, name, false), ...inner.map((line) => `${name}/${line}`)];
    });
}

function byNumberThenText(a: string, b: string): number {
  if (/^\d+$/.test(a) && /^\d+$/.test(b)) return Number(a) - Number(b);
  return a < b ? -1 : a > b ? 1 : 0;
}

const shared = new WeakMap<FixedLeaf, ContentResource>();

function sharedContentOf(leaf: FixedLeaf): ContentResource {
  const known = shared.get(leaf);
  if (known) return known;
  const made = contentOf(leaf);
  shared.set(leaf, made);
  return made;
}

function contentOf(leaf: FixedLeaf): ContentResource {
  const status = leaf.goneReason === null ? 200 : 410;
  const resource = content(status, leaf.body, leaf.contentType, leaf.isSecretBearing, false);
  if (leaf.whenPartial) return { ...resource, whenPartial: contentOf(leaf.whenPartial) };
  return leaf.isForAgent === true ? { ...resource, isForAgent: true } : resource;
}

function content(
  status: 200 | 410,
  body: Buffer,
  contentType: string,
  isSecretBearing: boolean,
  isFolder: boolean,
): ContentResource {
  const etag = etagOf(body);
  const headers = [
    'Content-Type',
    contentType,
    'Content-Length',
    String(body.length),
    'ETag',
    etag,
    ...(isSecretBearing ? ['Cache-Control', 'no-store'] : []),
  ];
  const text = body.length <= MAX_TEXT_BYTES ? body.toString('latin1') : null;
  return { kind: 'content', status, body, text, etag, headers, isFolder };
}

/** Returns a strong validator of the bytes, equal for equal content of any view. */
export function etagOf(body: Buffer): string {
  return `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`;
}
