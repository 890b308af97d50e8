/**
 * Gives the memory of a chunk back at once: nobody can use it any more. The engine frees it late
 * otherwise, and in a costly way: such memory is outside of its heap, and what refers to it is so
 * little that nothing but a mark of the whole heap, every 30 MB or so, makes room. That was most of
 * the time of a transfer.
 *
 * What shares its memory with others, as small chunks do by Node's pool, is left alone.
 */
export function spendBuffer({ buffer, byteLength }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0);
}
