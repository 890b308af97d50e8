import { z } from 'zod';
import type { Volume, VolumeGroup } from './lvm.ts';

/** What `--units b --nosuffix` prints; in JSON all values of LVM are text, or numbers by `json_std`. */
const bytes = z.coerce.number().int().nonnegative();
const text = z.string();
/** `json_std` has a list. */
const tags = z.union([z.array(z.string()), text.transform(splitTags)]);

const volumeRow = z.object({
  vg_name: text,
  vg_uuid: text,
  lv_name: text,
  lv_size: bytes,
  lv_tags: tags,
  lv_active: text,
  origin: text,
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

/** @throws ZodError, SyntaxError: it is no report of lvs */
export function parseVolumes(report: string): readonly Volume[] {
  const schema = z.object({ report: z.array(z.object({ lv: z.array(volumeRow) })) });
  return schema.parse(JSON.parse(report)).report.flatMap(({ lv }) =>
    lv.map((row) => ({
      ...{ group: row.vg_name, name: row.lv_name, sizeBytes: row.lv_size },
      ...{ groupUuid: row.vg_uuid, tags: row.lv_tags, isActive: row.lv_active === 'active' },
      origin: row.origin,
    })),
  );
}

/** @throws ZodError, SyntaxError: it is no report of vgs */
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
