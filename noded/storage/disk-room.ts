/**
 * Who was promised how much of a file system. What somebody has written of it counts as taken by
 * the file system itself.
 */
export interface DiskRoom {
  /** Bytes that nobody has and nobody was promised. */
  unclaimedBytes(): Promise<number>;
  /** @param taken bytes that its owner has written of it so far. Disposing ends the promise. */
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
