import {
  performServerHandshake,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { createServer, type TLSSocket } from 'node:tls';
import { InstanceSlots } from '#shared/bounds/instance-slots.ts';
import { messageOf } from '#shared/errors/app-error.ts';
import type { Logger } from '#shared/log/log.ts';
import { networkOf } from '#shared/socket/network-of.ts';
import {
  DATA_SETTINGS,
  DATA_TLS,
  keepSession,
  MAX_SESSION_MEMORY,
  PINNED,
  RECORD_KEPT_MS,
} from './data-session.ts';
import { claimedName, fingerprintOf, type NodeCertificate } from './node-certificate.ts';
import { hasItsShare } from './receive-window.ts';
import { TunnelStream } from './tunnel-stream.ts';

const MAX_CONNECTIONS = 1024;
/** Connections whose certificate has not been checked yet. */
const MAX_UNPROVEN = 64;
/** Of an IPv4 address or an IPv6 /64. */
const MAX_UNPROVEN_OF_NETWORK = 16;
/** Time for the TLS handshake and the reading of the node's record. */
const PROOF_TIMEOUT_MS = 5000;
/** A node has one connection. A new one may come before the end of the last is noticed. */
const MAX_CONNECTIONS_OF_NODE = 4;
/** Strangers must not fill the log. */
const LOG_PAUSE_MS = 10_000;

export interface DataListenerOptions {
  readonly host: string;
  readonly port: number;
  readonly certificate: NodeCertificate;
  /** Returns the fingerprint that a node has announced; undefined for an unknown node. */
  readonly fingerprintOf: (node: string) => Promise<string | undefined>;
  readonly onStream: (stream: Duplex, from: string) => void;
  readonly logger: Logger;
}

export interface DataListener extends AsyncDisposable {
  readonly port: number;
}

/**
 * Accepts data links of other nodes. A connection whose key no node of the cluster has announced is
 * closed before any HTTP is read.
 * @throws the system's error
 */
export async function startDataListener(options: DataListenerOptions): Promise<DataListener> {
  const links = new AcceptedLinks(options);
  const { pem } = options.certificate;
  const server = createServer({
    ...DATA_TLS,
    ...PINNED,
    key: pem,
    cert: pem,
    handshakeTimeout: PROOF_TIMEOUT_MS,
  });
  server.maxConnections = MAX_CONNECTIONS;
  server.on('connection', (socket) => links.admit(socket));
  server.on('secureConnection', (socket) => void links.prove(socket));
  // A broken handshake of a stranger.
  server.on('tlsClientError', (_error, socket) => socket.destroy());
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port, options.host, () => {
      server.off('error', reject);
      resolve();
    });
  });
  server.on('error', (error) => options.logger.warn('data-link.not-accepted', { err: error }));
  return {
    // A TCP server's address is an object.
    port: (server.address() as AddressInfo).port,
    [Symbol.asyncDispose]: async () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      links.end();
      await closed;
    },
  };
}

/** INVARIANT: at most MAX_UNPROVEN connections have not proved their node. */
class AcceptedLinks {
  readonly #options: DataListenerOptions;
  /** Frees the slot of a connection without a proven node, by its remote address and port. */
  readonly #unproven = new Map<string, () => void>();
  readonly #slots = new InstanceSlots(MAX_UNPROVEN_OF_NETWORK);
  readonly #sockets = new Set<Socket>();
  readonly #sessions = new Map<ServerHttp2Session, string>();
  /** Sending node of each open stream. */
  readonly #streams = new Map<Duplex, string>();
  #loggedAtMs = -Infinity;
  #unlogged = 0;

  constructor(options: DataListenerOptions) {
    this.#options = options;
  }

  admit(socket: Socket): void {
    const place = placeOf(socket);
    const isFull = this.#unproven.size >= MAX_UNPROVEN;
    const free = isFull ? undefined : this.#slots.take(networkOf(socket.remoteAddress ?? ''));
    if (free === undefined) {
      socket.destroy();
      this.#refused('too many connections wait for their handshake', socket.remoteAddress);
      return;
    }
    const timer = setTimeout(() => socket.destroy(), PROOF_TIMEOUT_MS);
    const once = (): void => {
      clearTimeout(timer);
      if (this.#unproven.delete(place)) free();
    };
    this.#unproven.set(place, once);
    this.#sockets.add(socket);
    socket.once('close', () => {
      this.#sockets.delete(socket);
      once();
    });
  }

  /** Ends the connection unless its key belongs to a node. */
  async prove(socket: TLSSocket): Promise<void> {
    const place = placeOf(socket);
    socket.on('error', () => socket.destroy());
    const proof = await this.#nodeOf(socket).catch((error: unknown) => ({
      reason: `the store does not answer: ${messageOf(error)}`,
    }));
    if (socket.destroyed) return;
    if ('reason' in proof) {
      this.#refused(proof.reason, socket.remoteAddress);
      socket.destroy();
      return;
    }
    this.#unproven.get(place)?.();
    this.#serve(socket, proof);
  }

  async #nodeOf(socket: TLSSocket): Promise<Proof | { readonly reason: string }> {
    const certificate = socket.getPeerX509Certificate();
    if (certificate === undefined) return { reason: 'no certificate' };
    const node = claimedName(certificate);
    if (node === undefined) return { reason: 'the certificate names no node' };
    const fingerprint = fingerprintOf(certificate);
    const atMs = performance.now();
    if (await this.#isKeyOf(node, fingerprint)) return { node, fingerprint, atMs };
    return { reason: `the key is not the one of node '${node}', or the node was removed` };
  }

  async #isKeyOf(node: string, fingerprint: string): Promise<boolean> {
    return (await this.#options.fingerprintOf(node)) === fingerprint;
  }

  async #isStillKnown(proof: Proof): Promise<boolean> {
    const nowMs = performance.now();
    if (nowMs - proof.atMs < RECORD_KEPT_MS) return true;
    const isKnown = await this.#isKeyOf(proof.node, proof.fingerprint);
    if (isKnown) proof.atMs = nowMs;
    return isKnown;
  }

  #serve(socket: TLSSocket, proof: Proof): void {
    const { node } = proof;
    const older = [...this.#sessions].filter(([, of]) => of === node).map(([session]) => session);
    if (older.length >= MAX_CONNECTIONS_OF_NODE) older[0]?.destroy();
    const session = performServerHandshake(socket, {
      settings: DATA_SETTINGS,
      maxSessionMemory: MAX_SESSION_MEMORY,
    });
    this.#sessions.set(session, node);
    session.once('close', () => this.#sessions.delete(session));
    session.on('error', (error) =>
      this.#options.logger.debug('data-link.broken', { node, reason: error.message }),
    );
    const addStream = keepSession(session, () => this.#isStillKnown(proof));
    session.on('stream', (stream, headers) => {
      stream.on('error', () => undefined);
      if (headers[':method'] === 'CONNECT') void this.#accept(stream, proof, addStream);
      else stream.close();
    });
  }

  /** Reads the node's record again, because it may have been removed meanwhile. */
  async #accept(
    stream: ServerHttp2Stream,
    proof: Proof,
    addStream: (stream: Duplex) => void,
  ): Promise<void> {
    const { node } = proof;
    const isKnown = await this.#isStillKnown(proof).catch(() => undefined);
    if (isKnown === false) {
      this.#refused(`node '${node}' was removed, or has another key`, null);
      stream.session?.destroy();
      return;
    }
    if (stream.closed) return;
    if (isKnown === undefined || hasItsShare(node, [...this.#streams.values()])) {
      stream.respond({ ':status': 503 }, { endStream: true });
      return;
    }
    stream.respond({ ':status': 200 });
    const tunnel = new TunnelStream(stream);
    // The user of the stream handles errors too. Before and after that they have no effect.
    tunnel.on('error', () => undefined);
    addStream(tunnel);
    this.#streams.set(tunnel, node);
    tunnel.once('close', () => this.#streams.delete(tunnel));
    this.#options.onStream(tunnel, node);
  }

  #refused(reason: string, address: string | undefined | null): void {
    const nowMs = performance.now();
    if (nowMs - this.#loggedAtMs < LOG_PAUSE_MS) {
      this.#unlogged += 1;
      return;
    }
    const { logger } = this.#options;
    logger.warn('data-link.refused', { reason, address, unlogged: this.#unlogged });
    this.#loggedAtMs = nowMs;
    this.#unlogged = 0;
  }

  end(): void {
    for (const session of this.#sessions.keys()) session.destroy();
    for (const socket of this.#sockets) socket.destroy();
  }
}

interface Proof {
  readonly node: string;
  readonly fingerprint: string;
  /** When the node's record was read. */
  atMs: number;
}

function placeOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
