/** What the streams between two QEMUs are called: memory, and a disk by its name in QEMU. */
export const memoryName = 'memory';

export function nodeNameOf(index: number): string {
  return `disk${index}`;
}
