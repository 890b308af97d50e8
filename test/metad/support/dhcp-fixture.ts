export interface DhcpMessageParts {
  readonly type: number;
  readonly flags?: number;
  readonly ciaddr?: readonly number[];
  readonly giaddr?: readonly number[];
  readonly mac?: readonly number[];
  /** Encoded options after the message type. */
  readonly options?: readonly number[];
}

/** A client's message on the wire, laid out by hand from RFC 2131. */
export function dhcpMessage(parts: DhcpMessageParts): Buffer {
  const bytes = Buffer.alloc(240);
  bytes.set([1, 1, 6, 0, 0x12, 0x34, 0x56, 0x78], 0);
  bytes.writeUInt16BE(parts.flags ?? 0, 10);
  bytes.set(parts.ciaddr ?? [0, 0, 0, 0], 12);
  bytes.set(parts.giaddr ?? [0, 0, 0, 0], 24);
  bytes.set(parts.mac ?? [0x52, 0x54, 0, 0xe1, 0xa3, 0x45], 28);
  bytes.set([0x63, 0x82, 0x53, 0x63], 236);
  return Buffer.concat([bytes, Buffer.from([53, 1, parts.type, ...(parts.options ?? []), 255])]);
}
