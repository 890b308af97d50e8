import { AppError } from '#shared/errors/app-error.ts';

/** Values are bytes: names and extended attributes need not be text. */
export type PaxRecords = Map<string, Buffer>;

const COMMA = Buffer.from(',');

/**
 * Parses the records `<length> <key>=<value>\n` of a pax header. The last record of a key counts;
 * segments of a sparse map are joined with commas.
 * @throws AppError PACKAGE_INVALID
 */
export function parsePax(bytes: Buffer): PaxRecords {
  const records = new Map<string, Buffer[]>();
  for (let offset = 0; offset < bytes.length;) {
    const space = bytes.indexOf(0x20, offset);
    const digits = space < 0 ? '' : bytes.toString('latin1', offset, space);
    const end = offset + (/^[1-9]\d{0,8}$/.test(digits) ? Number(digits) : 0);
    const equals = bytes.indexOf(0x3d, space + 1);
    const isRecord =
      space > offset &&
      end > space + 1 &&
      end <= bytes.length &&
      bytes[end - 1] === 0x0a &&
      equals < end;
    if (!isRecord || equals < 0)
      throw new AppError('PACKAGE_INVALID', 'not a usable tar.gz archive: a damaged pax header');
    const key = bytes.toString('latin1', space + 1, equals);
    const value = bytes.subarray(equals + 1, end - 1);
    const former = key.startsWith('GNU.sparse.') ? records.get(key) : undefined;
    // Most keys start another map. These two belong to one map, segment by segment.
    if (former && !/^GNU\.sparse\.(offset|numbytes)$/.test(key)) throw twice();
    if (former) former.push(COMMA, value);
    else records.set(key, [value]);
    offset = end;
  }
  return new Map([...records].map(([key, values]) => [key, Buffer.concat(values)]));
}

function twice(): AppError {
  const what = 'not a usable tar.gz archive: a sparse map that occurs twice';
  return new AppError('PACKAGE_INVALID', what, {
    hint: 'Create it with: tar -C DIR -czf x.tar.gz .',
  });
}
