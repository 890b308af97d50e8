/** Defined by scripts/bundle.ts, for all programs of one bundle. */
declare const GNT_BUILD: string;

/** Id of the bundle; null for programs that run from their sources. */
export const buildId: string | null = typeof GNT_BUILD === 'undefined' ? null : GNT_BUILD;

/** Names the build whose schemas have validated a response. */
export const BUILD_HEADER = 'x-gnt-build';
