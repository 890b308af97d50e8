import { MIB } from '#shared/units/bytes.ts';

/**
 * Limits of the input and the memory of a guest. Rates and connection counts are per instance and
 * come with its view.
 */

/** Request line and headers together; more gets 431. AWS allows 8 KiB too. */
export const MAX_HEADER_BYTES = 8 * 1024;
/** From the connection, or the first byte of a later request, to the end of the headers. */
export const HEADERS_TIMEOUT_MS = 10_000;
/** From the headers of a request to the last byte of its body. A relay has its own limit. */
export const BODY_TIMEOUT_MS = 30_000;
/** Idle time between two requests of one connection. */
export const KEEP_ALIVE_TIMEOUT_MS = 60_000;
/** Interval of the checks of the two timeouts above. */
export const TIMEOUT_CHECK_INTERVAL_MS = 1_000;
/** Bytes waiting in one direction of one instance's channel. */
export const MAX_QUEUE_BYTES = MIB;
/** Longest `?wait=` of a queue's reader, in seconds. */
export const MAX_READ_WAIT_S = 60;
/** Default and maximum of `timeout_sec` of `wait_for_change`, in seconds. */
export const DEFAULT_CHANGE_WAIT_S = 300;
export const MAX_CHANGE_WAIT_S = 3600;
/** Body of one POST to `ready`: phone_home sends four public keys. */
export const MAX_READY_BYTES = 16 * 1024;
/** One POST of cloud-init's webhook; files in it are ignored. */
export const MAX_BOOT_EVENT_BYTES = 16 * 1024;
/** JSON values in one event; it has six, and a few for each file. */
export const MAX_BOOT_EVENT_VALUES = 256;
/** cloud-init's status file, log lines of every warning included. */
export const MAX_BOOT_STATUS_BYTES = 256 * 1024;
/** JSON values in one status file: some fifty, and one per warning. */
export const MAX_BOOT_STATUS_VALUES = 4096;
/** Longest accepted body of a guest. */
export const MAX_BODY_BYTES = MAX_BOOT_STATUS_BYTES;
/**
 * Characters of an unfinished line of a script's output. The mask recognises a value only as a
 * whole, and its encoded forms are up to four times as long.
 */
export const MAX_OUTPUT_LINE_LENGTH = 256 * 1024;
/**
 * Limit of former values of a running guest that stay hidden in its reports; the oldest is
 * forgotten. Each one makes the mask slower.
 */
export const MAX_FORMER_VALUES = 256;
/**
 * Characters of all former values. As JSON they take up to six bytes each, which leaves room for
 * the rest of a handover in a body of 16 MiB.
 */
export const MAX_FORMER_CHARACTERS = 1024 * 1024;
/** OpenStack's limit for the `password` leaf: 255 bytes in four metadata items. */
export const MAX_PASSWORD_BYTES = 1020;
/**
 * A longer body is read and dropped up to this limit, so that the client sees the answer instead of
 * a reset.
 */
export const MAX_DRAINED_BYTES = MIB;
export const DRAIN_TIMEOUT_MS = 2_000;
/** Events of one instance that wait for the node daemon; older ones are counted and dropped. */
export const MAX_EVENTS_KEPT = 8192;
export const MAX_EVENT_BYTES_KEPT = 4 * MIB;
/** Limit for all instances. Beyond it the largest logs lose their oldest events. */
export const MAX_EVENT_BYTES_KEPT_OF_ALL = 64 * MIB;
/**
 * Longest wait of an acknowledgement for the node daemon. A reader that stalls delays no guest for
 * longer.
 */
export const HAND_OVER_LIMIT_MS = 1_000;
/**
 * Part of a report (install events, cloud-init's status, phone_home) that costs as much as a
 * request: it is parsed, checked and written again, here and by the node daemon.
 */
export const REPORT_BYTES_PER_REQUEST_TOKEN = 4096;
export const EVENTS_PER_REQUEST_TOKEN = 16;
/**
 * Cost, in requests, of each event that changes the progress of run lists: the node daemon stores
 * it, writes it into the audit log and makes a new view.
 */
export const REQUEST_TOKENS_PER_NEWS = 8;
/** Seconds until a refused writer or reader may try again. */
export const RETRY_AFTER_S = 1;
/** DHCP messages per second of one device that are parsed. */
export const DHCP_MESSAGES_PER_SECOND = 20;
/**
 * Audit lines of one instance: the requests of a boot at once, then a rate per second; further
 * lines are summed up in one.
 */
export const AUDIT_LINES_AT_ONCE = 500;
export const AUDIT_LINES_PER_SECOND = 20;
/**
 * Share of an instance in the whole log, at some 250 bytes per line: one megabyte, then less than
 * that in four hours. The node keeps 32 MiB, which one guest alone would need six days to fill.
 */
export const AUDIT_SHARE_LINES = 4000;
export const AUDIT_SHARE_LINES_PER_SECOND = 0.25;
/**
 * Outstanding requests of one connection, waits included. apt, the only known client that
 * pipelines, sends ten. Later requests in the same packet are not parsed.
 */
export const MAX_UNANSWERED_PER_CONNECTION = 16;
/**
 * Outstanding requests of all connections of an instance: one per connection, and these in
 * addition.
 */
export const UNANSWERED_BEYOND_CONNECTIONS = 32;
/**
 * Exclusion of a guest that exceeds these limits. It doubles each time until the guest has behaved
 * for a while.
 */
export const FIRST_EXCLUSION_MS = 100;
export const MAX_EXCLUSION_MS = 30_000;
export const FORGIVEN_AFTER_MS = 60_000;
/**
 * Receive buffer of a guest's connection, in bytes; the kernel doubles it. It bounds the work of
 * the parser for one packet before other guests have a turn, and the kernel's memory for unread
 * connections.
 */
export const RECEIVE_BUFFER_BYTES = 16 * 1024;
/**
 * Send buffer of a guest's connection, in bytes; the kernel doubles it. It bounds the kernel's
 * memory for unread answers: 16 MiB per instance instead of 256.
 */
export const SEND_BUFFER_BYTES = 128 * 1024;
/**
 * Both buffers of a connection to an exposed service: for a service that stops reading, the kernel
 * would hold some megabytes of the guest's data.
 */
export const SERVICE_BUFFER_BYTES = 128 * 1024;
/**
 * Cost, in requests, of opening an image or a package: the node opens a file, or begins a download.
 */
export const BULK_STREAM_COST = 20;
/** Header lines that cost as much as a request. */
export const HEADERS_PER_REQUEST_TOKEN = 32;
/**
 * Pieces of a body, and one more for each number of bytes: a chunk of one byte costs as much as one
 * of 64 KiB.
 */
export const MAX_BODY_PIECES = 256;
export const BYTES_PER_PIECE = 512;
/** Bytes of a connection with an unfinished chunked body that are too few to have cost anything. */
export const UNFINISHED_CHUNKS_BYTES = 1024;
/** Delay of answers with status 429, so that a guest at its limit cannot keep the process busy. */
export const REFUSAL_DELAY_MS = 50;
/** Delayed answers sent in one turn. */
export const REFUSALS_AT_ONCE = 16;
/**
 * Refused bodies of an instance in transfer: each is as many bytes to read as an accepted body. A
 * guest beyond the limit is cut off as for outstanding requests.
 */
export const MAX_REFUSED_BODIES = 8;
/**
 * Instances whose rendered answers are kept, some tens of kilobytes each: more than ever boot at
 * the same time.
 */
export const MAX_RENDERED_SITES = 1024;
/**
 * Datagram flows of all instances, each a connection to the node daemon and a socket there. Beyond
 * the limit the instance with the most flows loses its least recently used one.
 */
export const MAX_DATAGRAM_FLOWS_OF_ALL = 1024;
/** Datagrams that wait for the node daemon to open their flow. */
export const MAX_DATAGRAMS_WAITING = 4;
/** Bytes that wait in either direction; later datagrams are dropped, as a network does. */
export const MAX_DATAGRAM_BYTES_WAITING = 64 * 1024;
/**
 * A view contains an OS definition (16 MiB) at most twice: as an archive and as scripts, both in
 * base64.
 */
export const MAX_VIEW_BYTES = 64 * MIB;
/** Values that a guest may write below `guest-attributes`, and the characters of each. */
export const MAX_GUEST_ATTRIBUTES = 64;
export const MAX_GUEST_ATTRIBUTE_BYTES = 4 * 1024;
/**
 * Cost, in requests, of a changed attribute: the trees of the instance are rendered again, which
 * takes 30 ms with the longest user data and metadata.
 */
export const REQUEST_TOKENS_PER_ATTRIBUTE = 20;
/**
 * Pause after a published host key that ends the report. google-guest-agent generates each key
 * before it publishes it: RSA takes up to seconds.
 */
export const HOST_KEYS_PAUSE_MS = 5_000;
