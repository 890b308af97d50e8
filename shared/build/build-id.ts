/** Put there by scripts/bundle.ts: what all programs of one bundle have in common. */
declare const GNT_BUILD: string;

/** Of the programs that belong together; null for those that run from their sources. */
export const buildId: string | null = typeof GNT_BUILD === 'undefined' ? null : GNT_BUILD;

/** Says of which build the schemas are that an answer has passed. */
export const BUILD_HEADER = 'x-gnt-build';
