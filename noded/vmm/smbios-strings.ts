/** SMBIOS structure type 11, "OEM Strings" (DSP0134, 7.12). */
const TYPE = 11;
/** Bytes before the strings: type, length, handle, count. */
const HEADER_BYTES = 5;
/** QEMU's own number for the first structure of this type. */
const HANDLE = 0x0e00;
/** The count is a byte. */
const MAX_STRINGS = 255;

/**
 * Encodes a structure with these strings for `-smbios file=`. One file holds strings of any length;
 * `type=11,path=` needs a file per string, and `value=` shows them to every process of the host.
 * @throws RangeError for a string that the format cannot hold
 */
export function encodeSmbiosStrings(strings: readonly string[]): Buffer {
  if (strings.length > MAX_STRINGS) throw new RangeError('more than 255 SMBIOS strings');
  for (const text of strings) {
    if (text === '' || text.includes('\0')) throw new RangeError('not an SMBIOS string');
  }
  const header = Buffer.alloc(HEADER_BYTES);
  header[0] = TYPE;
  header[1] = HEADER_BYTES;
  header.writeUInt16LE(HANDLE, 2);
  header[4] = strings.length;
  const texts = strings.length === 0 ? '\0' : strings.map((text) => `${text}\0`).join('');
  return Buffer.concat([header, Buffer.from(`${texts}\0`)]);
}
