/**
 * DHCP for IPv4 as far as one known client per link needs it (RFC 2131, 2132, 3442). Pure: bytes to
 * values and back.
 */

const MESSAGE_TYPES = {
  discover: 1,
  offer: 2,
  request: 3,
  decline: 4,
  ack: 5,
  nak: 6,
  release: 7,
  inform: 8,
} as const;
type MessageType = keyof typeof MESSAGE_TYPES;

export interface DhcpRequest {
  readonly type: MessageType;
  readonly transactionId: number;
  readonly flags: number;
  readonly clientAddress: string;
  /** Non-zero for a relayed message, which cannot happen on a point-to-point link. */
  readonly relayAddress: string;
  readonly mac: string;
  /** The raw chaddr field: it is returned unchanged. */
  readonly hardwareAddress: Buffer;
  readonly requestedAddress: string | null;
  readonly serverIdentifier: string | null;
  /** Boot wishes of firmware; null for other clients. */
  readonly firmware: Firmware | null;
}

export interface Firmware {
  /** `PXEClient` or `HTTPClient`, without the suffix. */
  readonly vendorClass: string;
  readonly userClasses: readonly string[];
  /**
   * A number of IANA's list: EFI x64 HTTP if it was sent, else the first (RFC 4578); null without
   * one.
   */
  readonly architecture: number | null;
}

export interface DhcpReply {
  readonly type: 'offer' | 'ack' | 'nak';
  readonly request: DhcpRequest;
  /** 0.0.0.0 in a NAK, and in the answer to an INFORM. */
  readonly yourAddress: string;
  readonly serverIdentifier: string;
  /** Option code and content, in the order of the message. */
  readonly options: readonly (readonly [number, Buffer])[];
}

const FIXED_BYTES = 236;
const MAGIC_COOKIE = 0x63825363;
const OPTIONS_OFFSET = FIXED_BYTES + 4;
/** Some BOOTP relays and clients drop shorter messages. */
const MIN_REPLY_BYTES = 300;
const BOOT_REQUEST = 1;
const BOOT_REPLY = 2;
const ETHERNET = 1;
const MAC_BYTES = 6;
const OPTION_PAD = 0;
const OPTION_END = 255;
const OPTION_REQUESTED_ADDRESS = 50;
const OPTION_MESSAGE_TYPE = 53;
const OPTION_SERVER_IDENTIFIER = 54;
const OPTION_VENDOR_CLASS = 60;
const OPTION_USER_CLASS = 77;
const OPTION_ARCHITECTURE = 93;
/** IANA's number of EFI x64 that boots by HTTP. */
export const X64_HTTP = 16;

/** @returns null for anything but a well-formed DHCP message of an Ethernet client */
export function parseDhcpRequest(bytes: Buffer): DhcpRequest | null {
  if (bytes.length < OPTIONS_OFFSET || bytes.readUInt32BE(FIXED_BYTES) !== MAGIC_COOKIE)
    return null;
  if (bytes[0] !== BOOT_REQUEST || bytes[1] !== ETHERNET || bytes[2] !== MAC_BYTES) return null;
  const options = parseOptions(bytes.subarray(OPTIONS_OFFSET));
  const type = messageType(options?.get(OPTION_MESSAGE_TYPE));
  if (!options || !type) return null;
  const hardwareAddress = Buffer.from(bytes.subarray(28, 44));
  return {
    type,
    transactionId: bytes.readUInt32BE(4),
    flags: bytes.readUInt16BE(10),
    clientAddress: formatIpv4(bytes.subarray(12, 16)),
    relayAddress: formatIpv4(bytes.subarray(24, 28)),
    mac: [...hardwareAddress.subarray(0, MAC_BYTES)]
      .map((byte) => byte.toString(16).padStart(2, '0'))
      .join(':'),
    hardwareAddress,
    requestedAddress: addressOption(options.get(OPTION_REQUESTED_ADDRESS)),
    serverIdentifier: addressOption(options.get(OPTION_SERVER_IDENTIFIER)),
    firmware: firmwareOf(options),
  };
}

export function encodeDhcpReply(reply: DhcpReply): Buffer {
  const fixed = Buffer.alloc(OPTIONS_OFFSET);
  fixed[0] = BOOT_REPLY;
  fixed[1] = ETHERNET;
  fixed[2] = MAC_BYTES;
  fixed.writeUInt32BE(reply.request.transactionId, 4);
  fixed.writeUInt16BE(reply.request.flags, 10);
  if (reply.type !== 'nak') encodeIpv4(reply.request.clientAddress).copy(fixed, 12);
  encodeIpv4(reply.yourAddress).copy(fixed, 16);
  reply.request.hardwareAddress.copy(fixed, 28);
  fixed.writeUInt32BE(MAGIC_COOKIE, FIXED_BYTES);
  const options: readonly (readonly [number, Buffer])[] = [
    [OPTION_MESSAGE_TYPE, Buffer.from([MESSAGE_TYPES[reply.type]])],
    [OPTION_SERVER_IDENTIFIER, encodeIpv4(reply.serverIdentifier)],
    ...reply.options,
  ];
  const encoded = options.map(([code, content]) =>
    Buffer.concat([Buffer.from([code, content.length]), content]),
  );
  const bytes = Buffer.concat([fixed, ...encoded, Buffer.from([OPTION_END])]);
  return Buffer.concat([bytes, Buffer.alloc(Math.max(0, MIN_REPLY_BYTES - bytes.length))]);
}

/** @returns null when a length points beyond the end */
function parseOptions(bytes: Buffer): Map<number, Buffer> | null {
  const parts = new Map<number, Buffer[]>();
  let position = 0;
  while (position < bytes.length) {
    const code = bytes[position++];
    if (code === OPTION_PAD) continue;
    if (code === OPTION_END || code === undefined) break;
    const length = bytes[position++];
    if (length === undefined || position + length > bytes.length) return null;
    const content = bytes.subarray(position, position + length);
    const earlier = parts.get(code);
    if (earlier) earlier.push(content);
    else parts.set(code, [content]);
    position += length;
  }
  // A repeated option is one long one (RFC 3396). Its parts are joined once, not copied for each
  // part.
  return new Map([...parts].map(([code, contents]) => [code, Buffer.concat(contents)]));
}

function messageType(content: Buffer | undefined): MessageType | null {
  if (content?.length !== 1) return null;
  for (const [name, code] of Object.entries(MESSAGE_TYPES)) {
    // Object.entries widens the keys of a constant table to string.
    if (code === content[0]) return name as MessageType;
  }
  return null;
}

function firmwareOf(options: ReadonlyMap<number, Buffer>): Firmware | null {
  const [, vendorClass] =
    /^(PXEClient|HTTPClient)(?::|$)/.exec(
      options.get(OPTION_VENDOR_CLASS)?.toString('latin1') ?? '',
    ) ?? [];
  if (vendorClass === undefined) return null;
  return {
    vendorClass,
    userClasses: userClasses(options.get(OPTION_USER_CLASS)),
    architecture: chooseArchitecture(options.get(OPTION_ARCHITECTURE)),
  };
}

/**
 * Firmware may list several architectures, so EFI x64 over HTTP is preferred wherever it stands.
 */
function chooseArchitecture(content: Buffer | undefined): number | null {
  if (content === undefined || content.length === 0 || content.length % 2 !== 0) return null;
  const listed = Array.from({ length: content.length / 2 }, (_, at) =>
    content.readUInt16BE(2 * at),
  );
  return listed.find((number) => number === X64_HTTP) ?? listed[0] ?? null;
}

/** Parses a list of texts with their lengths (RFC 3004), or one plain text, as iPXE sends it. */
function userClasses(content: Buffer | undefined): readonly string[] {
  if (content === undefined) return [];
  const texts: string[] = [];
  for (let position = 0; position < content.length;) {
    const length = content[position++] ?? 0;
    if (length === 0 || position + length > content.length) return [content.toString('latin1')];
    texts.push(content.toString('latin1', position, position + length));
    position += length;
  }
  return texts;
}

function addressOption(content: Buffer | undefined): string | null {
  return content?.length === 4 ? formatIpv4(content) : null;
}

export function encodeIpv4(address: string): Buffer {
  return Buffer.from(address.split('.').map(Number));
}

function formatIpv4(bytes: Buffer): string {
  return [...bytes.subarray(0, 4)].join('.');
}
