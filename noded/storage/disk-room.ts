interface Promised {
  readonly bytes: number;
  readonly taken: () => Promise<number>;
}

/**
 * Reserves space of a file system. Bytes already written under a reservation count as used by the
 * file system.
 */
export function createDiskRoom(freeBytes: () => Promise<number>) {
  const promised = new Set<Promised>();
  return {
    /** Returns bytes that are neither used nor reserved. */
    unclaimedBytes: async (): Promise<number> => {
      const outstanding = await Promise.all(
        [...promised].map(async ({ bytes, taken }) => Math.max(0, bytes - (await taken()))),
      );
      return (await freeBytes()) - outstanding.reduce((sum, bytes) => sum + bytes, 0);
    },
    /**
     * Reserves bytes until the result is disposed of.
     * @param taken bytes of the reservation that its owner has written so far
     */
    promise: (bytes: number, taken: () => Promise<number>): Disposable => {
      const one = { bytes, taken };
      promised.add(one);
      return { [Symbol.dispose]: () => void promised.delete(one) };
    },
  };
}

export type DiskRoom = ReturnType<typeof createDiskRoom>;
