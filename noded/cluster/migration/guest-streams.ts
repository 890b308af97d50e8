/** Names of the streams between two QEMU processes: memory, and disks by their names in QEMU. */
export const memoryName = 'memory';

export function nodeNameOf(index: number): string {
  return `disk${index}`;
}
