/**
 * Maximum bytes of one write to a channel's queue, from guest or host (design of the channel,
 * section 5). In a separate file, so that commands load no schemas for it.
 */
export const MAX_MESSAGE_BYTES = 64 * 1024;
