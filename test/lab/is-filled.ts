/**
 * Tells whether all bytes have a value, at the speed of memory. A callback for each byte of a disk
 * takes a second.
 */
export function isFilledWith(byte: number, bytes: Uint8Array): boolean {
  if (bytes.length === 0) return true;
  return bytes[0] === byte && Buffer.compare(bytes.subarray(1), bytes.subarray(0, -1)) === 0;
}
