/**
 * Releases the memory of an unused chunk at once. The engine would free it late and at high cost:
 * such memory is outside its heap, and only a mark of the whole heap, every 30 MB or so, releases
 * it. That was most of the time of a transfer.
 *
 * Chunks that share memory, as small ones do in Node's pool, are left alone.
 */
export function spendBuffer({ buffer, byteLength }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0);
}
