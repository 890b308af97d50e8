/** Builds archives block by block, invalid ones too. */

export interface HeaderFields {
  readonly name?: string | Buffer;
  readonly type?: string;
  /** Written as octal, or as these bytes. */
  readonly size?: number | Buffer;
  readonly mode?: number | Buffer;
  readonly uid?: number | Buffer;
  readonly gid?: number | Buffer;
  readonly mtime?: number | Buffer;
  readonly link?: string | Buffer;
  readonly magic?: 'ustar' | 'gnu' | 'none';
  readonly prefix?: string | Buffer;
  readonly checksum?: 'signed' | 'wrong';
  /** Bytes at an offset, applied last. */
  readonly patch?: readonly (readonly [number, Buffer])[];
}

const BLOCK = 512;
export const END = Buffer.alloc(2 * BLOCK);

export function bytesOf(text: string | Buffer): Buffer {
  return typeof text === 'string' ? Buffer.from(text) : text;
}

/** Encodes base 256, as GNU tar does for numbers beyond octal. */
export function base256(value: bigint, length: number): Buffer {
  const field = Buffer.alloc(length);
  let rest = value < 0n ? value + (1n << BigInt(8 * length)) : value;
  for (let at = length - 1; at >= 0; at -= 1) {
    field[at] = Number(rest & 0xffn);
    rest >>= 8n;
  }
  if (value >= 0n) field[0] = 0x80;
  return field;
}

// eslint-disable-next-line complexity -- one default a field
export function header(fields: HeaderFields): Buffer {
  const block = Buffer.alloc(BLOCK);
  const number = (value: number | Buffer, start: number, length: number): void => {
    const text = typeof value === 'number' ? value.toString(8).padStart(length - 1, '0') : value;
    bytesOf(text).copy(block, start, 0, length);
  };
  bytesOf(fields.name ?? 'file').copy(block, 0, 0, 100);
  number(fields.mode ?? 0o644, 100, 8);
  number(fields.uid ?? 0, 108, 8);
  number(fields.gid ?? 0, 116, 8);
  number(fields.size ?? 0, 124, 12);
  number(fields.mtime ?? 1_000_000_000, 136, 12);
  block.write(fields.type ?? '0', 156, 'latin1');
  bytesOf(fields.link ?? '').copy(block, 157, 0, 100);
  const magic = fields.magic ?? 'ustar';
  if (magic === 'ustar') block.write('ustar\x0000', 257, 'latin1');
  if (magic === 'gnu') block.write('ustar  \0', 257, 'latin1');
  bytesOf(fields.prefix ?? '').copy(block, 345, 0, 155);
  for (const [at, bytes] of fields.patch ?? []) bytes.copy(block, at);
  block.fill(0x20, 148, 156);
  let sum = 0;
  const isSigned = fields.checksum === 'signed';
  for (let at = 0; at < BLOCK; at += 1) sum += isSigned ? block.readInt8(at) : block.readUInt8(at);
  if (fields.checksum === 'wrong') sum += 1;
  block.write(`${(sum & 0o777777).toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return block;
}

export function padded(content: Buffer): Buffer {
  return Buffer.concat([content, Buffer.alloc((BLOCK - (content.length % BLOCK)) % BLOCK)]);
}

/** Makes a header with its content; the default size is the content's. */
export function entry(fields: HeaderFields, content: string | Buffer = ''): Buffer {
  const bytes = bytesOf(content);
  return Buffer.concat([header({ size: bytes.length, ...fields }), padded(bytes)]);
}

export function paxRecord(key: string, value: string | Buffer): Buffer {
  const rest = Buffer.concat([Buffer.from(` ${key}=`), bytesOf(value), Buffer.from('\n')]);
  let length = rest.length + 1;
  while (String(length).length + rest.length !== length)
    length = String(length).length + rest.length;
  return Buffer.concat([Buffer.from(String(length)), rest]);
}

/** Makes a pax header for the following entry. */
export function pax(records: readonly (readonly [string, string | Buffer])[], type = 'x'): Buffer {
  const content = Buffer.concat(records.map(([key, value]) => paxRecord(key, value)));
  return entry({ name: 'PaxHeaders/x', type }, content);
}

/** Makes GNU's headers for a long name (`L`) or link target (`K`). */
export function gnuLong(type: 'L' | 'K', text: string | Buffer): Buffer {
  return entry(
    { name: '././@LongLink', type, magic: 'gnu' },
    Buffer.concat([bytesOf(text), Buffer.alloc(1)]),
  );
}
