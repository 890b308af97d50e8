import type { Volume } from '../../../../noded/storage/drivers/volumes/volume-system.ts';

/** What a volume with extents of its own says of thin pools. */
export const THICK: Pick<Volume, 'pool' | 'isPool' | 'isZeroing' | 'dataShare' | 'usedShare'> = {
  pool: '',
  isPool: false,
  isZeroing: false,
  dataShare: null,
  usedShare: null,
};
