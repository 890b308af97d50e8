/** Protocols of the ganeti dialect, oldest first. */
export const GANETI_VERSIONS = ['2026-12-01'] as const;
/**
 * Versions that EC2 clients request: cloud-init's list, oldest first; all others use 2009-04-04.
 */
export const EC2_VERSIONS = ['2009-04-04', '2016-09-02', '2018-09-24', '2021-03-23'] as const;
/** cloud-init's OS_VERSIONS (sources/helpers/openstack.py), oldest first. */
export const OPENSTACK_VERSIONS = [
  '2012-08-10',
  '2013-04-04',
  '2013-10-17',
  '2015-10-15',
  '2016-06-30',
  '2016-10-06',
  '2017-02-22',
  '2018-08-27',
] as const;

/** The only version of Google's tree with its header. */
export const GCE_VERSION = 'v1';

const DATE = /^(\d{4})-(\d{2})-(\d{2})$/;

/**
 * Returns whether a version segment is valid: `latest`, or a date not before the first version. All
 * versions of a dialect serve one tree.
 */
export function isVersionServed(segment: string, versions: readonly string[]): boolean {
  if (segment === 'latest') return true;
  const first = versions[0];
  return first !== undefined && isDate(segment) && segment >= first;
}

function isDate(text: string): boolean {
  const match = DATE.exec(text);
  if (!match) return false;
  const [year, month, day] = [Number(match[1]), Number(match[2]), Number(match[3])];
  const date = new Date(Date.UTC(year, month - 1, day));
  return date.getUTCMonth() === month - 1 && date.getUTCDate() === day;
}
