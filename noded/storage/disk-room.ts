/**
 * Reserves space of a file system. Bytes already written under a reservation count as used by the
 * file system.
 */
export interface DiskRoom {
  /** Returns bytes that are neither used nor reserved. */
  unclaimedBytes(): Promise<number>;
  /**
   * Reserves bytes until the result is disposed of.
   * @param taken bytes of the reservation that its owner has written so far
   */
  promise(bytes: number, taken: () => Promise<number>): Disposable;
}

interface Promised {
  readonly bytes: number;
  readonly taken: () => Promise<number>;
}

export function createDiskRoom(freeBytes: () => Promise<number>): DiskRoom {
  const promised = new Set<Promised>();
  return {
    unclaimedBytes: async () => {
      const outstanding = await Promise.all(
        [...promised].map(async ({ bytes, taken }) => Math.max(0, bytes - (await taken()))),
      );
      return (await freeBytes()) - outstanding.reduce((sum, bytes) => sum + bytes, 0);
    },
    promise: (bytes, taken) => {
      const one = { bytes, taken };
      promised.add(one);
      return { [Symbol.dispose]: () => void promised.delete(one) };
    },
  };
}
