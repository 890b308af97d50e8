import { z } from 'zod';
import {
  type CatalogueEntry,
  catalogueEntry,
  catalogueName,
  imageName,
} from '#shared/contract/image-catalogue.ts';
import { loginUser } from '#shared/contract/host-keys.ts';
import { imageChecksum } from '#shared/contract/opcode.ts';
import { sha256Hex } from '#shared/contract/primitives.ts';
import { AppError, systemCodeOf } from '#shared/errors/app-error.ts';
import { writeDurably } from '#shared/files/durable.ts';
import { readBounded } from '#shared/files/read-bounded.ts';
import { parseJson } from '#shared/json/parse-json.ts';
import { MIB } from '#shared/units/bytes.ts';

const importedImage = z.object({
  name: imageName,
  sha256: sha256Hex,
  sizeBytes: z.number().int(),
  title: z.string(),
  user: loginUser.nullable(),
  minDiskBytes: z.number().int().nullable(),
  format: z.string(),
  importedAtMs: z.number(),
});
const file = z.object({
  schema: z.literal(1),
  catalogues: z.array(
    z.object({
      name: catalogueName,
      source: z.string(),
      updatedAtMs: z.number(),
      refused: z.number().int(),
      // Skips entries that an earlier version accepted and this one refuses.
      entries: z
        .unknown()
        .array()
        .transform((all) => all.flatMap((each) => catalogueEntry.safeParse(each).data ?? [])),
    }),
  ),
  imported: importedImage.array(),
  /** Imported files that were found when this record was missing: their names are lost. */
  spared: sha256Hex.array().default([]),
  known: z.record(z.string(), z.object({ checksum: imageChecksum, isSigned: z.boolean() })),
});
/** The image names that this node knows. Replaced as a whole, never changed. */
export type Catalogues = z.infer<typeof file>;
export type ImportedImage = z.infer<typeof importedImage>;

const MAX_BYTES = 64 * MIB;
/** Size limit of one catalogue. All catalogues and the publishers' answers fit into MAX_BYTES. */
const MAX_CATALOGUE_BYTES = MIB;

/**
 * Loads the catalogues; undefined when the file is missing.
 * @throws AppError RECORD_UNREADABLE: an empty catalogue would remove all imported images
 */
export async function loadCatalogues(path: string): Promise<Catalogues | undefined> {
  let bytes: Buffer;
  try {
    bytes = await readBounded(path, MAX_BYTES);
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return undefined;
    if (systemCodeOf(error) === 'EFBIG') throw unreadable(path, error);
    throw error;
  }
  const parsed = file.safeParse(parseJson(bytes));
  if (parsed.success) return parsed.data;
  throw unreadable(path, parsed.error);
}

function unreadable(path: string, cause: unknown): AppError {
  return new AppError('RECORD_UNREADABLE', `the image catalogue ${path} cannot be read`, {
    hint: 'Move the file away, then repeat gnt-image add and gnt-image import.',
    cause,
  });
}

/** @throws AppError CATALOGUE_INVALID when the file would be too large to be read back */
export async function saveCatalogues(path: string, catalogues: Catalogues): Promise<void> {
  const text = JSON.stringify(catalogues);
  if (Buffer.byteLength(text) > MAX_BYTES)
    throw new AppError('CATALOGUE_INVALID', `all catalogues together exceed ${MAX_BYTES} bytes`, {
      hint: 'Remove catalogues that are not needed: gnt-image remove NAME',
    });
  await writeDurably(path, text, { mode: 0o600 });
}

/** @throws AppError CATALOGUE_INVALID when a catalogue exceeds its size limit */
export function requireStorable(name: string, entries: readonly CatalogueEntry[]): void {
  const sizeBytes = Buffer.byteLength(JSON.stringify(entries));
  if (sizeBytes <= MAX_CATALOGUE_BYTES) return;
  throw new AppError(
    'CATALOGUE_INVALID',
    `the catalogue ${name} takes ${sizeBytes} bytes, the limit is ${MAX_CATALOGUE_BYTES}`,
    { hint: 'Add a catalogue with fewer images.' },
  );
}
