/** Replacement of a value that must not be shown. */
export const REDACTED = '<redacted>';
