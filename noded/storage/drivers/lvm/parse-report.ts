import { z } from 'zod';
import type { Volume, VolumeGroup } from '../volumes/volume-system.ts';

/**
 * The output of `--units b --nosuffix`. In JSON LVM writes all values as text, or as numbers with
 * `json_std`.
 */
const bytes = z.coerce.number().int().nonnegative();
const text = z.string();
/** Empty for a volume without a percentage or an inactive one. */
const percent = z.union([
  z.number(),
  text.transform((said) => (said === '' ? null : Number(said))),
]);
/** A list with `json_std`. */
const tags = z.union([z.array(z.string()), text.transform(splitTags)]);

const volumeRow = z.object({
  vg_name: text,
  vg_uuid: text,
  lv_name: text,
  lv_size: bytes,
  lv_tags: tags,
  lv_active: text,
  origin: text,
  lv_attr: text,
  pool_lv: text,
  data_percent: percent,
  metadata_percent: percent,
});
const groupRow = z.object({
  vg_name: text,
  vg_uuid: text,
  vg_size: bytes,
  vg_free: bytes,
  vg_extent_size: bytes,
});

export const VOLUME_FIELDS = Object.keys(volumeRow.shape).join(',');
export const GROUP_FIELDS = Object.keys(groupRow.shape).join(',');

/** @throws ZodError, SyntaxError if the text is not a report of lvs */
export function parseVolumes(report: string): readonly Volume[] {
  const schema = z.object({ report: z.array(z.object({ lv: z.array(volumeRow) })) });
  return schema.parse(JSON.parse(report)).report.flatMap(({ lv }) =>
    lv.map((row) => ({
      ...{ group: row.vg_name, name: row.lv_name, sizeBytes: row.lv_size },
      ...{ groupUuid: row.vg_uuid, tags: row.lv_tags, isActive: row.lv_active === 'active' },
      origin: row.origin,
      ...thinness(row),
    })),
  );
}

/**
 * In `lv_attr` the first letter is the type; a `z` as the eighth means that new blocks are zeroed
 * (lvs(8)).
 */
function thinness({
  lv_attr: attributes,
  pool_lv: pool,
  data_percent: data,
  metadata_percent: metadata,
}: z.infer<typeof volumeRow>): Pick<
  Volume,
  'pool' | 'isPool' | 'isZeroing' | 'dataShare' | 'usedShare'
> {
  return {
    ...{ pool, isPool: attributes.startsWith('t'), isZeroing: attributes[7] === 'z' },
    dataShare: data === null ? null : data / 100,
    usedShare: data === null ? null : Math.max(data, metadata ?? 0) / 100,
  };
}

/** @throws ZodError, SyntaxError if the text is not a report of vgs */
export function parseGroups(report: string): readonly VolumeGroup[] {
  const schema = z.object({ report: z.array(z.object({ vg: z.array(groupRow) })) });
  return schema.parse(JSON.parse(report)).report.flatMap(({ vg }) =>
    vg.map((row) => ({
      ...{ name: row.vg_name, uuid: row.vg_uuid, sizeBytes: row.vg_size, freeBytes: row.vg_free },
      extentBytes: row.vg_extent_size,
    })),
  );
}

function splitTags(list: string): string[] {
  return list.split(',').filter((tag) => tag !== '');
}
