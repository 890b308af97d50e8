import { AppError } from '#shared/errors/app-error.ts';

/** Values are bytes: extended attributes are binary. */
export type PaxRecords = Map<string, Buffer>;

/**
 * Parses the records `<length> <key>=<value>\n` of a pax header. Sparse format 0.0 repeats its keys in pairs; they come out as one
 * `GNU.sparse.map`, as in 0.1.
 * @throws AppError PACKAGE_INVALID
 */
export function parsePax(bytes: Buffer): PaxRecords {
  const records: PaxRecords = new Map();
  const sparseNumbers: string[] = [];
  let offset = 0;
  while (offset < bytes.length) {
    const space = bytes.indexOf(0x20, offset);
    const length = space < 0 ? Number.NaN : Number(bytes.toString('latin1', offset, space));
    const end = offset + length;
    if (!Number.isInteger(length) || end > bytes.length || end <= space || bytes[end - 1] !== 0x0a)
      throw new AppError('PACKAGE_INVALID', 'not a usable tar.gz archive: a damaged pax header');
    const record = bytes.subarray(space + 1, end - 1);
    const equals = record.indexOf(0x3d);
    if (equals < 0)
      throw new AppError('PACKAGE_INVALID', 'not a usable tar.gz archive: a damaged pax header');
    const key = record.toString('utf8', 0, equals);
    const value = record.subarray(equals + 1);
    if (key === 'GNU.sparse.offset' || key === 'GNU.sparse.numbytes')
      sparseNumbers.push(value.toString('latin1'));
    // An empty value takes a global record back.
    else if (value.length === 0) records.delete(key);
    else records.set(key, Buffer.from(value));
    offset = end;
  }
  if (sparseNumbers.length > 0) records.set('GNU.sparse.map', Buffer.from(sparseNumbers.join(',')));
  return records;
}
