const BYTE_UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'] as const;

/** Returns `512 B`, `9.5 MiB` or `312 MiB`: at most three digits. */
export function formatBytes(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1000 && unit < BYTE_UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  const digits = unit === 0 || value >= 10 ? 0 : 1;
  return `${value.toFixed(digits)} ${BYTE_UNITS[unit]}`;
}

/** Returns `0.4 s`, `12.3 s`, `2 min 05 s` or `1 h 02 min`. */
export function formatDuration(durationMs: number): string {
  const seconds = Math.max(0, durationMs) / 1000;
  if (seconds < 59.95) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${pad(whole % 60)} s`;
  return `${Math.floor(whole / 3600)} h ${pad(Math.floor((whole % 3600) / 60))} min`;
}

/** Returns the time left: `0:09`, `1:02:03`. */
export function formatEta(durationMs: number): string {
  const whole = Math.max(0, Math.round(durationMs / 1000));
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return `${minutes}:${pad(whole % 60)}`;
  return `${Math.floor(minutes / 60)}:${pad(minutes % 60)}:${pad(whole % 60)}`;
}

/** Returns `2026-11-21 07:55:03` in the local time zone, as Ganeti prints times; `-` for none. */
export function formatTime(atMs: number | null): string {
  if (atMs === null) return '-';
  const at = new Date(atMs);
  const date = `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())}`;
  return `${date} ${formatClock(atMs)}`;
}

/** Returns the local time, `07:55:03`. */
export function formatClock(atMs: number): string {
  const at = new Date(atMs);
  return `${pad(at.getHours())}:${pad(at.getMinutes())}:${pad(at.getSeconds())}`;
}

export type SizeUnit = 'h' | 'm' | 'g' | 't';

/** Formats MiB as Ganeti's tables: `512M`, `1.5G` for `h`, bare numbers for a fixed unit. */
export function formatMiB(sizeMiB: number, unit: SizeUnit): string {
  if (unit === 'm' || (unit === 'h' && sizeMiB < 1024)) {
    return `${Math.round(sizeMiB)}${unit === 'h' ? 'M' : ''}`;
  }
  if (unit === 'g' || (unit === 'h' && sizeMiB < 1024 * 1024)) {
    return `${(sizeMiB / 1024).toFixed(1)}${unit === 'h' ? 'G' : ''}`;
  }
  return `${(sizeMiB / 1024 / 1024).toFixed(1)}${unit === 'h' ? 'T' : ''}`;
}

function pad(value: number): string {
  return String(value).padStart(2, '0');
}
