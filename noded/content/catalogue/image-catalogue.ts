import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '#shared/clock/clock.ts';
import {
  BUILT_IN,
  type CatalogueEntry,
  type CatalogueInfo,
  type ImageInfo,
  IMPORTED,
  type ImportImage,
  type ResolvedImage,
} from '#shared/contract/image-catalogue.ts';
import { AppError, isAppError } from '#shared/errors/app-error.ts';
import { ownValue } from '#shared/json/own-value.ts';
import { SerialQueue } from '#shared/serial/serial-queue.ts';
import { parseChecksum } from '../images/digest.ts';
import type { ImageCache } from '../images/image-cache.ts';
import { askPublisher, type PublisherOptions, readKeys } from './ask-publisher.ts';
import { builtInImages, type Machine } from './built-in.ts';
import {
  type Catalogues,
  type ImportedImage,
  loadCatalogues,
  requireStorable,
  saveCatalogues,
} from './catalogue-file.ts';
import { PublisherAway } from './fetch-small.ts';
import { findImage, type NamedImage, namesOf } from './find-image.ts';
import { createImportedImages } from './imported-images.ts';
import { keyOfKnown, withoutStrangers } from './known-checksums.ts';
import { type CatalogueContent, readCatalogue } from './read-source.ts';

export interface ImageCatalogueOptions extends PublisherOptions {
  readonly file: string;
  readonly importedDir: string;
  readonly images: Pick<ImageCache, 'holds'>;
  /** Returns paths in records: their imported images stay, even without a name. */
  readonly listPathsInUse: () => Promise<ReadonlySet<string>>;
  readonly machine: Machine;
  readonly clock: Clock;
}

const MAX_CATALOGUES = 32;
const MAX_IMPORTED = 1000;

/** Images by name, as this node knows them. Changes are serialized. */
export function createImageCatalogue(options: ImageCatalogueOptions) {
  const { file, images, machine, clock } = options;
  const imported = createImportedImages(options.importedDir);
  const turns = new SerialQueue<'change'>();
  const builtIn = builtInImages(machine);
  let opening: Promise<Catalogues> | undefined;

  const load = (): Promise<Catalogues> => {
    opening ??= loadFirst().catch((error: unknown) => {
      opening = undefined;
      throw error;
    });
    return opening;
  };
  const loadFirst = async (): Promise<Catalogues> => {
    // When the record is lost, its images still exist.
    const now = (await loadCatalogues(file)) ?? {
      schema: 1 as const,
      catalogues: [],
      imported: [],
      known: {},
      spared: await imported.list(),
    };
    await sweep(now);
    return now;
  };
  const sweep = async ({ imported: kept, spared }: Catalogues): Promise<void> => {
    const wanted = new Set([...kept.map(({ sha256 }) => sha256), ...spared]);
    await imported.keepOnly(wanted, options.listPathsInUse);
  };
  /** Serializes changes. The written state is authoritative. */
  const change = (make: (now: Catalogues) => Catalogues | Promise<Catalogues>): Promise<void> =>
    turns.run('change', async () => {
      const before = await load();
      const made = await make(before);
      const next = { ...made, known: withoutStrangers(made.known, all(made)) };
      await saveCatalogues(file, next);
      opening = Promise.resolve(next);
      if (next.imported !== before.imported) await sweep(next);
    });
  const read = async (
    name: string,
    source: string,
    signal: AbortSignal,
  ): Promise<CatalogueContent> => {
    const content = await readCatalogue(source, {
      fetchSmall: options.fetchSmall,
      firstUid: options.gpgv.users.first,
      machine,
      signal,
    });
    if (content.entries.length === 0) throw useless(source, machine, content);
    requireStorable(name, content.entries);
    return content;
  };
  const all = ({ imported: own, catalogues }: Catalogues): NamedImage[] => [
    ...own.map((image) => ({ catalogue: IMPORTED, kind: 'imported' as const, image })),
    ...builtIn.map((entry) => ({ catalogue: BUILT_IN, kind: 'entry' as const, entry })),
    ...catalogues.flatMap(({ name, entries }) =>
      entries.map((entry) => ({ catalogue: name, kind: 'entry' as const, entry })),
    ),
  ];

  return {
    /** Removes unfinished imports of an earlier daemon. @throws AppError RECORD_UNREADABLE */
    async settle(): Promise<void> {
      await load();
    },
    async list(): Promise<ImageInfo[]> {
      const now = await load();
      const named = all(now);
      const first = new Map<string, NamedImage>();
      for (const each of named) {
        const [name = ''] = namesOf(each);
        if (!first.has(name)) first.set(name, each);
      }
      return Promise.all(
        named.map(async (each) => ({
          ...describe(each, now, imported.pathOf),
          isCached: each.kind === 'imported' || (await isCached(each, now, images)),
          isShadowed: first.get(namesOf(each)[0] ?? '') !== each,
        })),
      );
    },
    async catalogues(): Promise<CatalogueInfo[]> {
      return [
        {
          name: BUILT_IN,
          source: 'built into gnt-noded',
          refused: 0,
          updatedAtMs: null,
          images: builtIn.length,
        },
        ...(await load()).catalogues.map(({ name, source, entries, refused, updatedAtMs }) => ({
          name,
          source,
          images: entries.length,
          refused,
          updatedAtMs,
        })),
      ];
    },
    /**
     * Resolves a name to an image with a checksum, which the publisher is asked for when the
     * catalogue has none. When the publisher cannot be reached, its last answer is used as long as
     * that image is cached.
     * @throws AppError IMAGE_NOT_FOUND, CONFLICT, DOWNLOAD_FAILED, SIGNATURE_INVALID,
     * CATALOGUE_INVALID
     */
    async resolve(reference: string, signal: AbortSignal): Promise<ResolvedImage> {
      const now = await load();
      const named = findImage(reference, all(now));
      const { name, catalogue, source, user, minDiskBytes, format, cloudInit, verified } = describe(
        named,
        now,
        imported.pathOf,
      );
      const facts = { name, catalogue, source, user, minDiskBytes, format, cloudInit };
      const fixed =
        named.kind === 'imported' ? `sha256:${named.image.sha256}` : named.entry.checksum;
      if (fixed !== null || named.kind === 'imported')
        return { ...facts, checksum: fixed ?? '', verified, isOffline: false };
      const { entry } = named;
      if (entry.checksums === null) throw new Error('accepted an entry without a checksum');
      const key = keyOfKnown(catalogue, entry);
      const keys = await readKeys(entry, catalogue === BUILT_IN);
      try {
        const asked = { ...entry, checksums: entry.checksums };
        const published = await askPublisher(asked, keys, options, signal);
        if (!isDeepStrictEqual(ownValue(now.known, key), published))
          await change((before) => ({
            ...before,
            known: { ...before.known, [key]: published },
          }));
        const by = published.isSigned ? 'signature' : 'https';
        return { ...facts, checksum: published.checksum, verified: by, isOffline: false };
      } catch (error) {
        signal.throwIfAborted();
        const known = ownValue(now.known, key);
        if (!(error instanceof PublisherAway) || known === undefined) throw error;
        // An unsigned answer, from a time without a keyring, does not replace a verifiable
        // signature.
        const mayCount = known.isSigned || keys === null;
        if (!mayCount || !(await images.holds(known.checksum))) throw error;
        return { ...facts, checksum: known.checksum, verified, isOffline: true };
      }
    },
    async import(
      { name, path, checksum, ...facts }: ImportImage,
      signal: AbortSignal,
    ): Promise<void> {
      const otherThan = (now: Catalogues): ImportedImage[] => {
        refuseTaken(name, now.catalogues, 'catalogue');
        const others = now.imported.filter((image) => image.name !== name);
        if (others.length >= MAX_IMPORTED) throw tooMany('imported images', MAX_IMPORTED);
        return others;
      };
      otherThan(await load());
      const wanted = checksum === undefined ? null : parseChecksum(checksum);
      // Outside the queue: a copy takes long.
      await using copy = await imported.take(path, wanted, signal);
      await change(async (now) => {
        const others = otherThan(now);
        const { sha256, sizeBytes } = copy;
        await copy.keep();
        const image: ImportedImage = {
          name,
          sha256,
          sizeBytes,
          title: facts.title ?? '',
          user: facts.user ?? null,
          minDiskBytes: facts.minDiskBytes ?? null,
          format: facts.format ?? 'auto',
          importedAtMs: clock.now(),
        };
        const spared = now.spared.filter((each) => each !== sha256);
        return { ...now, imported: [...others, image], spared };
      });
    },
    /** Reads a catalogue and adds it. @throws AppError CONFLICT, CATALOGUE_INVALID */
    async add(name: string, source: string, signal: AbortSignal): Promise<void> {
      if (name === BUILT_IN || name === IMPORTED)
        throw new AppError('CONFLICT', `a catalogue named '${name}' exists already`, {
          hint: 'Choose another name.',
        });
      const requireFree = (now: Catalogues): void => {
        refuseTaken(name, now.imported, 'imported image');
        refuseTaken(name, now.catalogues, 'catalogue');
        if (now.catalogues.length >= MAX_CATALOGUES) throw tooMany('catalogues', MAX_CATALOGUES);
      };
      requireFree(await load());
      // Outside the queue: a remote server may be slow.
      const content = await read(name, source, signal);
      await change((now) => {
        requireFree(now);
        const fresh = { name, source, updatedAtMs: clock.now(), ...whole(content) };
        return { ...now, catalogues: [...now.catalogues, fresh] };
      });
    },
    /** Reads catalogues again. Unreadable ones stay unchanged and are reported. @throws AppError */
    async update(names: readonly string[], signal: AbortSignal): Promise<void> {
      const { catalogues } = await load();
      const unknown = names.find((name) => !catalogues.some((each) => each.name === name));
      if (unknown !== undefined) throw noCatalogue(unknown);
      const fresh: { name: string; source: string; content: CatalogueContent }[] = [];
      const failures: Failure[] = [];
      for (const { name, source } of catalogues) {
        if (names.length > 0 && !names.includes(name)) continue;
        try {
          fresh.push({ name, source, content: await read(name, source, signal) });
        } catch (error) {
          signal.throwIfAborted();
          if (!isAppError(error)) throw error;
          failures.push({ name, error });
        }
      }
      await change((now) => ({
        ...now,
        catalogues: now.catalogues.map((each) => {
          // The name may belong to another source meanwhile.
          const { content } =
            fresh.find(({ name, source }) => name === each.name && source === each.source) ?? {};
          if (content === undefined) return each;
          return { ...each, updatedAtMs: clock.now(), ...whole(content) };
        }),
      }));
      const [first, ...others] = failures;
      if (first === undefined) return;
      throw others.length === 0 ? first.error : notUpdated(first, others);
    },
    /** Removes an imported image or a catalogue. @throws AppError IMAGE_NOT_FOUND */
    remove: (name: string): Promise<void> =>
      change((now) => {
        const isNamed = (each: { readonly name: string }): boolean => each.name === name;
        if (!now.imported.some(isNamed) && !now.catalogues.some(isNamed)) throw noCatalogue(name);
        return {
          ...now,
          imported: now.imported.filter((each) => !isNamed(each)),
          catalogues: now.catalogues.filter((each) => !isNamed(each)),
        };
      }),
  };
}

export type ImageCatalogue = ReturnType<typeof createImageCatalogue>;

function useless(source: string, machine: Machine, { refused }: CatalogueContent): AppError {
  return new AppError(
    'CATALOGUE_INVALID',
    `the catalogue ${source} has no usable image for ${machine}; refused entries: ${refused}`,
    { hint: 'Each image needs a name, a url and a checksum: see gnt-image add --help' },
  );
}

interface Failure {
  readonly name: string;
  readonly error: AppError;
}

function notUpdated(first: Failure, others: readonly Failure[]): AppError {
  const all = [first, ...others];
  const told = all.map(({ name, error }) => `${name}: ${error.message}`).join('; ');
  const { code, hint } = first.error;
  return new AppError(code, `${all.length} catalogues were not updated: ${told}`, {
    details: { catalogues: all.map(({ name }) => name) },
    hint,
    cause: first.error,
  });
}

function whole({ entries, refused }: CatalogueContent): {
  entries: CatalogueEntry[];
  refused: number;
} {
  return { entries: [...entries], refused };
}

async function isCached(
  { catalogue, entry }: Extract<NamedImage, { kind: 'entry' }>,
  { known }: Catalogues,
  images: Pick<ImageCache, 'holds'>,
): Promise<boolean> {
  const wanted = entry.checksum ?? ownValue(known, keyOfKnown(catalogue, entry))?.checksum;
  return wanted !== undefined && (await images.holds(wanted));
}

type Described = Omit<ImageInfo, 'isCached' | 'isShadowed'>;

function describe(
  named: NamedImage,
  { known }: Catalogues,
  pathOf: (sha256: string) => string,
): Described {
  const { catalogue } = named;
  if (named.kind === 'imported') {
    const { name, sha256, title, user, minDiskBytes, format } = named.image;
    return {
      name,
      catalogue,
      aliases: [],
      title,
      user,
      minDiskBytes,
      cloudInit: null,
      format: format as ImageInfo['format'], // validated at the import
      source: pathOf(sha256),
      checksum: `sha256:${sha256}`,
      checksums: null,
      verified: 'import',
    };
  }
  const { name, aliases, title, user, minDiskBytes, format, cloudInit, url } = named.entry;
  const { checksum, checksums } = named.entry;
  const last = ownValue(known, keyOfKnown(catalogue, named.entry));
  const ofList = last?.isSigned === true ? 'signature' : 'https';
  return {
    name,
    catalogue,
    aliases: [...aliases],
    title,
    user,
    minDiskBytes,
    cloudInit,
    format,
    source: url,
    checksum: checksum ?? last?.checksum ?? null,
    checksums,
    verified: checksum === null ? ofList : 'catalogue',
  };
}

function refuseTaken(
  name: string,
  taken: readonly { readonly name: string }[],
  what: string,
): void {
  if (!taken.some((each) => each.name === name)) return;
  throw new AppError('CONFLICT', `a ${what} '${name}' exists already`, {
    hint: `Choose another name, or remove the existing one: gnt-image remove ${name}`,
  });
}

function tooMany(what: string, most: number): AppError {
  return new AppError('CONFLICT', `the limit of ${most} ${what} is reached`, {
    hint: 'Remove some that are not needed: gnt-image remove NAME',
  });
}

function noCatalogue(name: string): AppError {
  return new AppError(
    'IMAGE_NOT_FOUND',
    `'${name}' is neither an added catalogue nor an imported image`,
    {
      hint: 'Show both with gnt-image list-catalogues and gnt-image list.',
    },
  );
}
