/** Packet type of signatures (RFC 9580, 5). */
const SIGNATURE_TYPE = 2;

interface Packet {
  readonly type: number;
  readonly end: number;
}

/**
 * Returns whether bytes are signature packets and nothing else. With another packet among them,
 * such as a signed message, gpgv may judge that packet instead of the content.
 */
export function areSignaturePackets(bytes: Buffer): boolean {
  let offset = 0;
  while (offset < bytes.length) {
    const packet = readPacket(bytes, offset);
    if (packet?.type !== SIGNATURE_TYPE || packet.end > bytes.length) return false;
    offset = packet.end;
  }
  return bytes.length > 0;
}

/**
 * Reads a packet header of either format (RFC 9580, 4.2). Returns null for a packet without a
 * definite length.
 */
function readPacket(bytes: Buffer, offset: number): Packet | null {
  const first = bytes[offset] ?? 0;
  if ((first & 0x80) === 0) return null;
  if ((first & 0x40) !== 0) return readNewFormat(bytes, offset + 1, first & 0x3f);
  const width = [1, 2, 4][first & 0x03];
  if (width === undefined || offset + 1 + width > bytes.length) return null;
  const body = offset + 1 + width;
  return { type: (first >> 2) & 0x0f, end: body + bytes.readUIntBE(offset + 1, width) };
}

function readNewFormat(bytes: Buffer, offset: number, type: number): Packet | null {
  const [first = 0xe0, second = 0] = bytes.subarray(offset, offset + 2);
  if (first < 192) return { type, end: offset + 1 + first };
  if (first < 224) return { type, end: offset + 2 + ((first - 192) << 8) + second + 192 };
  if (first < 255 || offset + 5 > bytes.length) return null;
  return { type, end: offset + 5 + bytes.readUInt32BE(offset + 1) };
}
