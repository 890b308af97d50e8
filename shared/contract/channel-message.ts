/**
 * Bytes that one write to a channel's queue has at most, from guest or host; design of the channel,
 * section 5. A file of its own, since commands load no schemas for it.
 */
export const MAX_MESSAGE_BYTES = 64 * 1024;
