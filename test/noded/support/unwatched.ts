/** Of a long copy that nobody watches and nobody ends. */
export const UNWATCHED = {
  signal: new AbortController().signal,
  onProgress: (): void => undefined,
};
