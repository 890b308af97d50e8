import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2';
import type { Duplex } from 'node:stream';
import { connect, type TLSSocket } from 'node:tls';
import { orAborted } from '#shared/abort/abortable.ts';
import { startDeadline } from '#shared/abort/deadline.ts';
import type { DataAddress } from '../../records/node-registry.ts';
import {
  DATA_SETTINGS,
  DATA_TLS,
  keepSession,
  MAX_SESSION_MEMORY,
  PINNED,
} from './data-session.ts';
import { fingerprintOf, type NodeCertificate } from './node-certificate.ts';
import { TunnelStream } from './tunnel-stream.ts';

/** As for streams through the store. */
const ANSWER_TIMEOUT_MS = 3000;
const HTTP_OK = 200;

/** A TLS connection to another node. */
export interface DataConnection {
  readonly session: ClientHttp2Session;
  /** @throws Error without an answer in time, or when the node refuses */
  open(): Promise<Duplex>;
}

/**
 * @param isKnown whether the node still has the key of this address
 * @throws Error with the reason: refused, timed out, or the key of another node
 */
export async function connectToNode(
  node: string,
  address: DataAddress,
  { pem }: NodeCertificate,
  isKnown: () => Promise<boolean>,
): Promise<DataConnection> {
  using deadline = startDeadline(undefined, ANSWER_TIMEOUT_MS, timedOut);
  const { host, port } = address;
  const tls = { ...DATA_TLS, ...PINNED, key: pem, cert: pem };
  // Node refuses an address as the server's name, and the key decides anyway.
  const socket = connect({ ...tls, host, port, servername: '' });
  try {
    await eventOf(socket, 'secureConnect', deadline.signal);
    requireKey(socket, address.fingerprint);
    const session = connectHttp2(`http://${node}`, {
      createConnection: () => socket,
      settings: DATA_SETTINGS,
      maxSessionMemory: MAX_SESSION_MEMORY,
    });
    // The first frame of the other node shows that it accepts this node's key.
    await eventOf(session, 'remoteSettings', deadline.signal);
    // A close follows, which has the same effect.
    session.on('error', () => undefined);
    const addStream = keepSession(session, isKnown);
    const open = async (): Promise<Duplex> => {
      const tunnel = await openTunnel(session, node);
      addStream(tunnel);
      return tunnel;
    };
    return { session, open };
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

function requireKey(socket: TLSSocket, fingerprint: string): void {
  const certificate = socket.getPeerX509Certificate();
  if (certificate !== undefined && fingerprintOf(certificate) === fingerprint) return;
  throw new Error('its key is not the announced one');
}

async function openTunnel(session: ClientHttp2Session, node: string): Promise<Duplex> {
  using deadline = startDeadline(undefined, ANSWER_TIMEOUT_MS, timedOut);
  const stream = session.request(
    { ':method': 'CONNECT', ':authority': node },
    { endStream: false },
  );
  const answered = new Promise<number | undefined>((resolve) =>
    stream.once('response', (headers) => resolve(headers[':status'])),
  );
  // Also during the wait: data may follow the answer at once.
  const tunnel = new TunnelStream(stream);
  const closed = new Promise<never>((_, reject) => {
    tunnel.once('close', () => reject(new Error('the node closed the connection')));
  });
  closed.catch(() => undefined);
  // The user of the stream handles errors too. Before and after that they have no effect.
  tunnel.on('error', () => undefined);
  try {
    const status = await orAborted(Promise.race([answered, closed]), deadline.signal);
    if (status !== HTTP_OK) throw new Error('the node has too many open streams');
    return tunnel;
  } catch (error) {
    tunnel.destroy();
    // Packets may be dropped. Open streams keep this connection, new ones need another.
    if (deadline.signal.aborted) session.close();
    throw error;
  }
}

/** Resolves with the event. @throws the emitter's error, and the signal's reason */
async function eventOf(
  emitter: TLSSocket | ClientHttp2Session,
  event: string,
  signal: AbortSignal,
): Promise<void> {
  const happened = new Promise<void>((resolve, reject) => {
    emitter.once(event, () => resolve());
    emitter.once('error', reject);
    emitter.once('close', () => reject(new Error('the node closed the connection')));
  });
  await orAborted(happened, signal);
}

function timedOut(): Error {
  return new Error(`no answer within ${ANSWER_TIMEOUT_MS / 1000} s`);
}
