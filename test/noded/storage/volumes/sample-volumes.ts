import type { Volume } from '../../../../noded/storage/drivers/volumes/volume-system.ts';

/** Thin pool fields of a volume with its own extents. */
export const THICK: Pick<Volume, 'pool' | 'isPool' | 'isZeroing' | 'dataShare' | 'usedShare'> = {
  pool: '',
  isPool: false,
  isZeroing: false,
  dataShare: null,
  usedShare: null,
};
