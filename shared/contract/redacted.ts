/** What stands wherever a value must not be shown. */
export const REDACTED = '<redacted>';
