import type { Http2Session, Settings } from 'node:http2';
import type { Duplex } from 'node:stream';
import type { SecureContextOptions } from 'node:tls';
import { constants } from 'node:crypto';
import { every } from '#shared/clock/every.ts';
import { KIB, MIB } from '#shared/units/bytes.ts';
import { MAX_STREAMS } from './receive-window.ts';

/** As for streams through the store. */
const PING_MS = 5000;
const MAX_SILENCE_MS = 20_000;

/** Both ends of a data link. AES-128 costs a third less time than AES-256 here. */
export const DATA_TLS = {
  minVersion: 'TLSv1.3',
  ciphers: 'TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256',
  // Every connection proves its key again.
  secureOptions: constants.SSL_OP_NO_TICKET,
} as const satisfies SecureContextOptions;

/** Only keys decide. Neither names nor authorities of certificates are checked. */
export const PINNED = { requestCert: true, rejectUnauthorized: false } as const;

/**
 * Time for which a read record of a connected node counts, since a move opens a stream for each
 * MiB. A removed node is refused after this time.
 */
export const RECORD_KEPT_MS = 1000;

/**
 * Received bytes of a stream that may wait for its reader. With MAX_STREAMS streams of slow readers
 * 128 MiB wait in this process. A window of 512 KiB carries 500 MiB/s for round trips of 1 ms.
 */
const STREAM_WINDOW_BYTES = 512 * KIB;
export const DATA_SETTINGS: Settings = {
  initialWindowSize: STREAM_WINDOW_BYTES,
  maxConcurrentStreams: MAX_STREAMS,
  maxFrameSize: 256 * KIB,
  maxHeaderListSize: 4 * KIB,
  enablePush: false,
};
/** Node counts megabytes. New streams are refused while buffers exceed this. */
export const MAX_SESSION_MEMORY = 256;
/** Node gives the window of a connection back at once, so it only has to be large enough. */
const SESSION_WINDOW_BYTES = 16 * MIB;

/**
 * Ends a session when the other node is silent for too long, or when it has open streams and the
 * other node was removed.
 * @param isKnown whether the node still has the key of this session; an error means unknown
 * @returns adds an open stream
 */
export function keepSession(
  session: Http2Session,
  isKnown: () => Promise<boolean>,
): (stream: Duplex) => void {
  session.setLocalWindowSize(SESSION_WINDOW_BYTES);
  const streams = new Set<Duplex>();
  let heardAtMs = performance.now();
  const checkKey = async (): Promise<void> => {
    if (streams.size === 0 || (await isKnown().catch(() => true))) return;
    session.destroy(new Error('the other node was removed, or has another key'));
  };
  const pinging = every(PING_MS, () => {
    if (session.destroyed) return;
    if (performance.now() - heardAtMs > MAX_SILENCE_MS)
      return session.destroy(new Error('the other node stopped responding'));
    session.ping((error) => {
      if (error === null) heardAtMs = performance.now();
    });
    void checkKey();
  });
  session.once('close', () => pinging[Symbol.dispose]());
  return (stream) => {
    streams.add(stream);
    stream.once('close', () => streams.delete(stream));
  };
}
