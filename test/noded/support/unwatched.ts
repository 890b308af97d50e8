/** Options of a long copy without progress and without an abort. */
export const UNWATCHED = {
  signal: new AbortController().signal,
  onProgress: (): void => undefined,
};
