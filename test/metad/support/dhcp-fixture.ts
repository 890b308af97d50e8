export interface DhcpMessageParts {
  readonly type: number;
  /** Four bytes. */
  readonly transactionId?: readonly number[];
  readonly flags?: number;
  readonly ciaddr?: readonly number[];
  readonly giaddr?: readonly number[];
  readonly mac?: readonly number[];
  /** Encoded options after the message type. */
  readonly options?: readonly number[];
}

/** Builds a client's message, independently of the codec. */
export function dhcpMessage(parts: DhcpMessageParts): Buffer {
  const bytes = Buffer.alloc(240);
  bytes.set([1, 1, 6, 0], 0);
  bytes.set(parts.transactionId ?? [0x12, 0x34, 0x56, 0x78], 4);
  bytes.writeUInt16BE(parts.flags ?? 0, 10);
  bytes.set(parts.ciaddr ?? [0, 0, 0, 0], 12);
  bytes.set(parts.giaddr ?? [0, 0, 0, 0], 24);
  bytes.set(parts.mac ?? [0x52, 0x54, 0, 0xe1, 0xa3, 0x45], 28);
  bytes.set([0x63, 0x82, 0x53, 0x63], 236);
  return Buffer.concat([bytes, Buffer.from([53, 1, parts.type, ...(parts.options ?? []), 255])]);
}

export interface DecodedReply {
  readonly type: string | undefined;
  readonly transactionId: number;
  readonly yourAddress: string;
  readonly mac: string;
  readonly options: ReadonlyMap<number, Buffer>;
}

/** Decodes a server's message by RFC 2131, without the codec under test. */
export function decodeDhcpReply(bytes: Buffer): DecodedReply {
  const options = new Map<number, Buffer>();
  for (let at = 240; bytes[at] !== 255 && at < bytes.length;) {
    const length = bytes[at + 1] ?? 0;
    options.set(bytes[at] ?? 0, bytes.subarray(at + 2, at + 2 + length));
    at += 2 + length;
  }
  const types: Readonly<Record<number, string>> = { 2: 'offer', 5: 'ack', 6: 'nak' };
  return {
    type: types[options.get(53)?.[0] ?? 0],
    transactionId: bytes.readUInt32BE(4),
    yourAddress: [...bytes.subarray(16, 20)].join('.'),
    mac: [...bytes.subarray(28, 34)].map((byte) => byte.toString(16).padStart(2, '0')).join(':'),
    options,
  };
}
