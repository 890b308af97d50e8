import { isAbsolute } from 'node:path';
import {
  type CatalogueEntry,
  catalogueEntry,
  type CatalogueVerdict,
  catalogueVerdict,
  MAX_ENTRIES,
} from '#shared/contract/image-catalogue.ts';
import { othersTurn } from '#shared/clock/turns.ts';
import { AppError, messageOf } from '#shared/errors/app-error.ts';
import { parseJson } from '#shared/json/parse-json.ts';
import { askSandboxed } from '#shared/sandbox/ask-sandboxed.ts';
import { KIB, MIB } from '#shared/units/bytes.ts';
import { isDeeper } from '../downloads/transfer/address-policy.ts';
import { depthOfHost } from '../downloads/transfer/ssrf-guard.ts';
import { type FetchSmall, parseCatalogueSource } from './fetch-small.ts';

export interface CatalogueContent {
  readonly entries: readonly CatalogueEntry[];
  readonly refused: number;
}

export interface ReadSourceOptions {
  readonly fetchSmall: FetchSmall;
  readonly firstUid: number;
  readonly machine: string;
  readonly signal: AbortSignal;
}

/** The documents of Ubuntu and Incus have a few MiB. */
const MAX_DOCUMENT_BYTES = 16 * MIB;
const MAX_IMAGES = 5000;
const MAX_VERDICT_CHARACTERS = 128 * KIB;
/** Length of one entry as JSON; the fields of a valid entry have at most some 12,000 characters. */
const MAX_ENTRY_CHARACTERS = 16_384;
const STREAMS = /\.(json|ya?ml)$/i;

/**
 * Reads a catalogue: a file of the node or an https URL. Its documents are untrusted, so that a
 * sandboxed program parses them.
 * @param source a document (.json, .yaml, .yml), or the root of simplestreams
 * @throws AppError CATALOGUE_INVALID, IMAGE_SOURCE, PACKAGE_DOWNLOAD
 */
export async function readCatalogue(
  source: string,
  options: ReadSourceOptions,
): Promise<CatalogueContent> {
  parseCatalogueSource(source);
  const isStream = !isAbsolute(source) && !STREAMS.test(new URL(source).pathname);
  const document = isStream ? below(rootOf(source), 'streams/v1/index.json') : source;
  const first = await ask(document, options);
  if (first.verdict === 'entries') return await judgeAll(first, document);
  const root = document.slice(0, -'streams/v1/index.json'.length);
  if (isAbsolute(document) || !document.endsWith('/streams/v1/index.json'))
    throw invalid(
      source,
      'an index of simplestreams must have a URL that ends in /streams/v1/index.json',
    );
  const all: CatalogueContent[] = [];
  for (const path of first.paths) {
    const products = below(root, path);
    const verdict = await ask(products, options);
    if (verdict.verdict === 'index') throw invalid(products, 'an index points to another index');
    all.push(await judgeAll(verdict, products, root));
    if (all.reduce((sum, { entries }) => sum + entries.length, 0) > MAX_IMAGES)
      throw invalid(source, `it has more than ${MAX_IMAGES} images`);
  }
  return {
    entries: all.flatMap(({ entries }) => entries),
    refused: all.reduce((sum, { refused }) => sum + refused, 0),
  };
}

type Understood = Exclude<CatalogueVerdict, { verdict: 'refused' }> & {
  readonly lines: readonly string[];
};

async function ask(
  document: string,
  { fetchSmall, firstUid, machine, signal }: ReadSourceOptions,
): Promise<Understood> {
  const bytes = await fetchSmall(document, MAX_DOCUMENT_BYTES, signal);
  let answer: string;
  try {
    // The raw bytes: converting or copying them would block the daemon.
    answer = await askSandboxed('noded/content/catalogue/read-catalogue', bytes, {
      firstUid,
      args: [machine],
      signal,
    });
  } catch (error) {
    signal.throwIfAborted();
    throw invalid(document, 'the catalogue reader failed', error);
  }
  const [first = '', ...lines] = answer.split('\n', MAX_ENTRIES + 1);
  const isShort = first.length <= MAX_VERDICT_CHARACTERS;
  const verdict = catalogueVerdict.safeParse(isShort ? parseJson(first) : undefined);
  if (!verdict.success) throw invalid(document, 'its content exceeds the size of an answer');
  if (verdict.data.verdict === 'refused') throw invalid(document, verdict.data.message);
  return { ...verdict.data, lines: lines.filter((line) => line !== '') };
}

/** Validates entry by entry, and yields in between: thousands of them would block the daemon. */
async function judgeAll(
  { lines, isStream }: Extract<Understood, { verdict: 'entries' }>,
  document: string,
  root?: string,
): Promise<CatalogueContent> {
  const base = isStream ? (root ?? document.replace(/streams\/v1\/[^/]*$/, '')) : document;
  const entries: CatalogueEntry[] = [];
  for (const line of lines) {
    await othersTurn();
    const given = line.length <= MAX_ENTRY_CHARACTERS ? parseJson(line) : undefined;
    const entry = isFields(given) ? judge(given, base, isStream) : undefined;
    if (entry !== undefined) entries.push(entry);
  }
  return { entries, refused: lines.length - entries.length };
}

type Fields = Readonly<Record<string, unknown>>;

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Returns the entry; undefined when it is invalid or its URLs are not allowed. */
function judge(given: Fields, base: string, isStream: boolean): CatalogueEntry | undefined {
  const isLocal = isAbsolute(base);
  const whole: Record<string, unknown> = { ...given };
  for (const key of ['url', 'checksums', 'signature'] as const) {
    const text = whole[key];
    if (typeof text !== 'string' || isLocal) continue;
    whole[key] = URL.parse(text, base)?.href;
  }
  const parsed = catalogueEntry.safeParse(whole);
  if (!parsed.success) return undefined;
  const { url, checksums, keyring } = parsed.data;
  if (isLocal) return parsed.data;
  for (const place of [url, checksums])
    if (place !== null && leadsNearer(place, base)) return undefined;
  // A remote catalogue must not name files of this node, and streams must stay within their root.
  if (keyring !== null || (isStream && !url.startsWith(base))) return undefined;
  return parsed.data;
}

/**
 * Whether a URL leads nearer to this host than the catalogue's server is, which a remote document
 * must not do.
 */
function leadsNearer(place: string, base: string): boolean {
  const [to, from] = [new URL(place), new URL(base)];
  if (to.hostname === from.hostname) return false;
  const depth = depthOfHost(to);
  return depth === null || isDeeper(depth, depthOfHost(from) ?? 'public');
}

function rootOf(source: string): string {
  return source.endsWith('/') ? source : `${source}/`;
}

/** @throws AppError CATALOGUE_INVALID when the path leads outside the root */
function below(root: string, path: string): string {
  const url = URL.parse(path, root)?.href;
  if (url === undefined || !url.startsWith(root))
    throw invalid(root, `it points outside of itself, to '${path.slice(0, 200)}'`);
  return url;
}

function invalid(source: string, why: string, cause?: unknown): AppError {
  const reason = cause === undefined ? why : `${why} (${messageOf(cause).slice(0, 200)})`;
  return new AppError('CATALOGUE_INVALID', `the catalogue ${source} cannot be used: ${reason}`, {
    details: { source },
    hint: 'The format of a catalogue is described by gnt-image add --help',
    cause,
  });
}
