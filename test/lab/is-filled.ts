/**
 * Whether all of it is that byte. As fast as memory is read: a callback for each byte of a disk
 * takes a second.
 */
export function isFilledWith(byte: number, bytes: Uint8Array): boolean {
  if (bytes.length === 0) return true;
  return bytes[0] === byte && Buffer.compare(bytes.subarray(1), bytes.subarray(0, -1)) === 0;
}
