import { MIB } from '#shared/units/bytes.ts';
import { measurePlaces } from '../../host/file-systems.ts';
import { describeSpace, findLowSpace, groupPlaces, SPACE_HINT } from '../../host/low-space.ts';
import { type Check, loadCluster, ok } from './check.ts';

/** Free space below which installations on a file system fail. */
const NEEDED_FREE_BYTES = 256 * MIB;

export const checkFreeDisk: Check = async (parts) => {
  const check = 'disk';
  const places = await measurePlaces(parts.config.paths);
  const all = groupPlaces(places);
  const low = findLowSpace(places, (await loadCluster(parts))?.lowSpacePercent);
  const lacking = all.filter(({ freeBytes }) => freeBytes < NEEDED_FREE_BYTES);
  const told = all.filter((one) => [...low, ...lacking].some(({ path }) => path === one.path));
  const message = (told.length === 0 ? all : told).map(describeSpace).join('; ');
  if (told.length === 0) return ok(check, message);
  const level = lacking.length > 0 ? 'error' : 'warning';
  return { check, level, message, hint: SPACE_HINT };
};
