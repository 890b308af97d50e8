/** One member of an initramfs. */
export interface CpioEntry {
  /** Relative to the root, without a leading slash. */
  readonly path: string;
  readonly mode: number;
  readonly data: Buffer;
}

const DIRECTORY_MODE = 0o040755;
const FILE_TYPE = 0o100000;
const ALIGNMENT = 4;

/**
 * Encodes an initramfs in "newc" format (kernel: early-userspace/buffer-format). Without owners,
 * times or inode numbers of the build: equal input makes equal bytes.
 */
export function encodeCpio(directories: readonly string[], files: readonly CpioEntry[]): Buffer {
  const parts: Buffer[] = [];
  let inode = 1;
  for (const path of directories)
    parts.push(member(path, DIRECTORY_MODE, Buffer.alloc(0), inode++));
  for (const file of files)
    parts.push(member(file.path, FILE_TYPE | file.mode, file.data, inode++));
  parts.push(member('TRAILER!!!', 0, Buffer.alloc(0), 0));
  return Buffer.concat(parts);
}

function member(path: string, mode: number, data: Buffer, inode: number): Buffer {
  const links = 1;
  const fields = [inode, mode, 0, 0, links, 0, data.length, 0, 0, 0, 0, path.length + 1, 0];
  const header = `070701${fields.map((field) => field.toString(16).padStart(8, '0')).join('')}`;
  return Buffer.concat([pad(Buffer.from(`${header}${path}\0`)), pad(data)]);
}

function pad(bytes: Buffer): Buffer {
  const missing = (ALIGNMENT - (bytes.length % ALIGNMENT)) % ALIGNMENT;
  return missing === 0 ? bytes : Buffer.concat([bytes, Buffer.alloc(missing)]);
}
