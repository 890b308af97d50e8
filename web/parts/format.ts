const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
const SECOND_MS = 1000;
const number = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 });
const dateTime = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
const shortTime = new Intl.DateTimeFormat(undefined, { dateStyle: 'short', timeStyle: 'short' });

/** Formats a number in the browser's locale. */
export function formatNumber(value: number): string {
  return number.format(value);
}

/** Formats bytes with a binary unit. */
export function formatBytes(bytes: number): string {
  let unit = 0;
  let value = bytes;
  while (Math.abs(value) >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${number.format(value)} ${UNITS[unit] ?? 'B'}`;
}

export function formatMiB(mib: number): string {
  return formatBytes(mib * 1024 * 1024);
}

/** Formats a time for a narrow column. */
export function formatShortTime(ms: number): string {
  return shortTime.format(ms);
}

export function formatTime(ms: number): string {
  return dateTime.format(ms);
}

/** Formats a length of time as `1 h 5 min`, `12 s` or `0.4 s`. */
export function formatDuration(ms: number): string {
  const seconds = ms / SECOND_MS;
  if (seconds < 10) return `${number.format(seconds)} s`;
  if (seconds < 120) return `${number.format(Math.round(seconds))} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 120) return `${number.format(minutes)} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${number.format(hours)} h ${minutes % 60} min`;
  return `${number.format(Math.floor(hours / 24))} d ${hours % 24} h`;
}
