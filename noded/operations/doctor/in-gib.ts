import { GIB } from '#shared/units/bytes.ts';

export function toGib(bytes: number): string {
  return `${(bytes / GIB).toFixed(1)} GiB`;
}
