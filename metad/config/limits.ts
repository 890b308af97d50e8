import { MIB } from '#shared/units/bytes.ts';

/**
 * Limits of what a guest may send or hold. Rates and connection counts are per instance and come
 * with its view.
 */

/** Request line and headers together; more gets 431. AWS allows 8 KiB as well. */
export const MAX_HEADER_BYTES = 8 * 1024;
/** From the connection, or the first byte of a later request, to the end of the headers. */
export const HEADERS_TIMEOUT_MS = 10_000;
/** From the first byte of a request to the last byte of its body. */
export const REQUEST_TIMEOUT_MS = 30_000;
/** Idle time between two requests of one connection. */
export const KEEP_ALIVE_TIMEOUT_MS = 60_000;
/** How often the two timeouts above are looked at. */
export const TIMEOUT_CHECK_INTERVAL_MS = 1_000;
/** Bytes waiting in one direction of one instance's channel. */
export const MAX_QUEUE_BYTES = MIB;
/** Longest `?wait=` of a queue's reader, in seconds. */
export const MAX_READ_WAIT_S = 60;
/** `wait_for_change` without `timeout_sec`, and the longest that it may ask for, in seconds. */
export const DEFAULT_CHANGE_WAIT_S = 300;
export const MAX_CHANGE_WAIT_S = 3600;
/** Body of one POST to `ready`: phone_home sends four public keys. */
export const MAX_READY_BYTES = 16 * 1024;
/** One POST of cloud-init's webhook; files that it may add are not read. */
export const MAX_BOOT_EVENT_BYTES = 16 * 1024;
/** JSON values of one; it has six, and a few for each file. */
export const MAX_BOOT_EVENT_VALUES = 256;
/** cloud-init's status file, log lines of every warning included. */
export const MAX_BOOT_STATUS_BYTES = 256 * 1024;
/** JSON values of one: some fifty, and as many as there are warnings. */
export const MAX_BOOT_STATUS_VALUES = 4096;
/** The longest body of a guest that anything takes. */
export const MAX_BODY_BYTES = MAX_BOOT_STATUS_BYTES;
/**
 * Characters of an unfinished line of a script's output: a value in it is known by its whole, and
 * its forms are up to four times as long.
 */
export const MAX_OUTPUT_LINE_LENGTH = 256 * 1024;
/**
 * Values that were changed while a guest is up, and are hidden in its words all the same; the
 * oldest is forgotten. Each makes the mask dearer.
 */
export const MAX_FORMER_VALUES = 256;
/**
 * Characters of all of them: with six bytes of JSON for each, they leave room in a body of 16 MiB
 * for what else goes to another node.
 */
export const MAX_FORMER_CHARACTERS = 1024 * 1024;
/** OpenStack's limit for the `password` leaf: 255 bytes in four metadata items. */
export const MAX_PASSWORD_BYTES = 1020;
/**
 * A too long body is read and dropped up to here, so that the client sees the answer rather than a
 * reset.
 */
export const MAX_DRAINED_BYTES = MIB;
export const DRAIN_TIMEOUT_MS = 2_000;
/** Events of one instance that wait for the node daemon; older ones are counted and dropped. */
export const MAX_EVENTS_KEPT = 8192;
export const MAX_EVENT_BYTES_KEPT = 4 * MIB;
/** The same of all instances together. Beyond it those that have most lose their oldest. */
export const MAX_EVENT_BYTES_KEPT_OF_ALL = 64 * MIB;
/**
 * How long a report waits for its acknowledgement until the node daemon has it. One that does not
 * read holds up no guest for longer.
 */
export const HAND_OVER_LIMIT_MS = 1_000;
/**
 * What of a report (install events, cloud-init's account of a boot, phone_home) costs as much as a
 * request: it is parsed, checked and written again, here and by the node daemon.
 */
export const REPORT_BYTES_PER_REQUEST_TOKEN = 4096;
export const EVENTS_PER_REQUEST_TOKEN = 16;
/**
 * What each event costs, in requests, that brings a guest further with its run lists: the node
 * daemon stores it, writes it into the audit log and makes a new view.
 */
export const REQUEST_TOKENS_PER_NEWS = 8;
/** Seconds until a refused writer or reader may try again. */
export const RETRY_AFTER_S = 1;
/** DHCP messages of one device that are looked at, per second. */
export const DHCP_MESSAGES_PER_SECOND = 20;
/**
 * Audit lines of one instance: a guest's boot at once, then so many per second; the rest is summed
 * up in one line.
 */
export const AUDIT_LINES_AT_ONCE = 500;
export const AUDIT_LINES_PER_SECOND = 20;
/**
 * And of the log as a whole, a line being some 250 bytes: a megabyte, then less than that in four
 * hours. The node keeps 32 MiB, which one guest alone would take six days to fill.
 */
export const AUDIT_SHARE_LINES = 4000;
export const AUDIT_SHARE_LINES_PER_SECOND = 0.25;
/**
 * Requests of one connection that have no whole answer yet, waits included: apt, the only client of
 * today that sends requests ahead, sends ten. What comes after them in the same packet is not even
 * parsed.
 */
export const MAX_UNANSWERED_PER_CONNECTION = 16;
/** Of all connections of an instance together: each may wait for something, and these many more. */
export const UNANSWERED_BEYOND_CONNECTIONS = 32;
/**
 * Who goes beyond these is cut off, and gets no new connection for so long; twice as long each time
 * until it was good for a while.
 */
export const FIRST_EXCLUSION_MS = 100;
export const MAX_EXCLUSION_MS = 30_000;
export const FORGIVEN_AFTER_MS = 60_000;
/**
 * Receive buffer of a guest's connection, in bytes; the kernel doubles it. It bounds what one of
 * its packets can make the parser do before anybody else has a turn, and what the kernel holds for
 * connections that nobody reads from.
 */
export const RECEIVE_BUFFER_BYTES = 16 * 1024;
/**
 * Send buffer of a guest's connection, in bytes; the kernel doubles it. It bounds what the kernel
 * holds of answers that nobody reads: 16 MiB of an instance, where it would be 256.
 */
export const SEND_BUFFER_BYTES = 128 * 1024;
/**
 * Either buffer of a connection to an exposed service, likewise: for one that does not read any
 * more, the kernel would hold some megabytes of what the guest sends.
 */
export const SERVICE_BUFFER_BYTES = 128 * 1024;
/**
 * Requests that opening an image or a package costs as much as: the node opens a file for it, or
 * begins a download.
 */
export const BULK_STREAM_COST = 20;
/** Header lines that cost as much as a request. */
export const HEADERS_PER_REQUEST_TOKEN = 32;
/**
 * Pieces that a body may come in, and one more for so many bytes: a chunk of one byte costs as much
 * as one of 64 KiB.
 */
export const MAX_BODY_PIECES = 256;
export const BYTES_PER_PIECE = 512;
/**
 * Bytes of a connection with an unfinished body of unknown length that are too few to have cost
 * anything.
 */
export const UNFINISHED_CHUNKS_BYTES = 1024;
/**
 * An answer that says 429 waits this long, so that a guest at its limit cannot keep the process
 * busy.
 */
export const REFUSAL_DELAY_MS = 50;
/** Then so many leave before others have their turn. */
export const REFUSALS_AT_ONCE = 16;
/**
 * Bodies of an instance that are dropped at a time, since the guest is at its limit: each is as
 * many bytes to read as one that is taken. Who goes beyond it is cut off as for unanswered
 * requests.
 */
export const MAX_REFUSED_BODIES = 8;
/**
 * Instances whose rendered answers are kept, some tens of kilobytes each: more than ever boot at
 * the same time.
 */
export const MAX_RENDERED_SITES = 1024;
/**
 * Flows of datagrams of all instances together, each a connection to the node daemon and a socket
 * there. Beyond it the instance that has most loses the one that is idle longest.
 */
export const MAX_DATAGRAM_FLOWS_OF_ALL = 1024;
/** Datagrams that wait for the node daemon to open their flow. */
export const MAX_DATAGRAMS_WAITING = 4;
/**
 * Bytes that wait to be sent, in either direction; what comes then is dropped, as a network does.
 */
export const MAX_DATAGRAM_BYTES_WAITING = 64 * 1024;
/**
 * A view holds an OS definition (16 MiB) twice at most: as an archive and as scripts, both in
 * base64.
 */
export const MAX_VIEW_BYTES = 64 * MIB;
