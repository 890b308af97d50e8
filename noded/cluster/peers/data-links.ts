import type { Duplex } from 'node:stream';
import type { DataLink } from '#shared/contract/data-links.ts';
import { messageOf } from '#shared/errors/app-error.ts';
import type { Logger } from '#shared/log/log.ts';
import type { DataAddress, NodeRegistry } from '../../records/node-registry.ts';
import { connectToNode, type DataConnection } from './data-connection.ts';
import { RECORD_KEPT_MS } from './data-session.ts';
import type { NodeCertificate } from './node-certificate.ts';

/** Pause after a failure, doubled up to the limit. Streams go through the store meanwhile. */
const FIRST_PAUSE_MS = 5000;
const MAX_PAUSE_MS = 60_000;
/** Only reached after many nodes joined and left. */
const MAX_NODES = 4096;

export interface DataLinksOptions {
  readonly nodes: Pick<NodeRegistry, 'dataAddressOf'>;
  readonly certificate: NodeCertificate;
  readonly logger: Logger;
}

interface Link {
  readonly address: DataAddress;
  /** When the address was read. */
  readAtMs: number;
  connecting: Promise<DataConnection> | undefined;
  connection: DataConnection | undefined;
  failure: Failure | undefined;
}

interface Failure {
  readonly reason: string;
  readonly pauseMs: number;
  readonly atMs: number;
}

const NO_ADDRESS = 'the node announces no data address';

/** Connects this node to the data addresses of other nodes, with one connection to each. */
export class DataLinks implements Disposable {
  readonly #options: DataLinksOptions;
  readonly #links = new Map<string, Link>();
  /** Includes replaced sessions with open streams. */
  readonly #sessions = new Set<DataConnection['session']>();

  constructor(options: DataLinksOptions) {
    this.#options = options;
  }

  /**
   * Opens a stream to a node.
   * @returns undefined if the node cannot be reached this way; `describe` has the reason
   * @throws AppError STORE_UNAVAILABLE
   */
  async open(node: string): Promise<Duplex | undefined> {
    const link = await this.#linkTo(node);
    if (link === undefined || isPausing(link)) return undefined;
    try {
      const stream = await (await this.#connect(node, link)).open();
      link.failure = undefined;
      return stream;
    } catch (error) {
      this.#failed(node, link, error);
      return undefined;
    }
  }

  /**
   * Opens and closes a stream now, also during the pause after a failure: packets of an old
   * connection may be dropped by now.
   * @throws AppError STORE_UNAVAILABLE
   */
  async probe(node: string): Promise<DataLink> {
    const link = await this.#linkTo(node);
    if (link === undefined) return { node, path: 'store', address: null, reason: NO_ADDRESS };
    try {
      (await (await this.#connect(node, link)).open()).destroy();
      link.failure = undefined;
    } catch (error) {
      this.#failed(node, link, error);
    }
    return describe(node, link);
  }

  /** Returns the state of the links that were used. */
  describe(): readonly DataLink[] {
    return [...this.#links].map(([node, link]) => describe(node, link));
  }

  /** Returns a new link when the node has announced another address or key. */
  async #linkTo(node: string): Promise<Link | undefined> {
    const used = this.#links.get(node);
    if (used?.connection !== undefined && performance.now() - used.readAtMs < RECORD_KEPT_MS)
      return used;
    const readAtMs = performance.now();
    const address = await this.#options.nodes.dataAddressOf(node);
    const known = this.#links.get(node);
    if (address !== undefined && known !== undefined && isSame(address, known.address)) {
      known.readAtMs = readAtMs;
      return known;
    }
    known?.connection?.session.destroy();
    this.#links.delete(node);
    if (address === undefined) return undefined;
    if (this.#links.size >= MAX_NODES) this[Symbol.dispose]();
    const none = { connecting: undefined, connection: undefined, failure: undefined };
    const link = { address, readAtMs, ...none };
    this.#links.set(node, link);
    return link;
  }

  #connect(node: string, link: Link): Promise<DataConnection> {
    const { connection } = link;
    if (connection !== undefined && !connection.session.closed) return Promise.resolve(connection);
    link.connecting ??= this.#connectNew(node, link).finally(() => (link.connecting = undefined));
    return link.connecting;
  }

  async #connectNew(node: string, link: Link): Promise<DataConnection> {
    const { certificate, logger, nodes } = this.#options;
    const { host, port, fingerprint } = link.address;
    const connection = await connectToNode(node, link.address, certificate, async () => {
      return (await nodes.dataAddressOf(node))?.fingerprint === fingerprint;
    });
    const { session } = connection;
    session.on('error', (error) =>
      logger.info('data-link.broken', { node, host, port, reason: error.message }),
    );
    session.once('close', () => {
      this.#sessions.delete(session);
      if (link.connection === connection) link.connection = undefined;
    });
    // Closed in the meantime, or replaced by a link to a new address.
    if (this.#links.get(node) !== link) session.destroy();
    if (session.destroyed) throw new Error('the node closed the connection');
    this.#sessions.add(session);
    link.connection = connection;
    link.failure = undefined;
    logger.info('data-link.ready', { node, host, port });
    return connection;
  }

  #failed(node: string, link: Link, error: unknown): void {
    const { logger } = this.#options;
    const reason = messageOf(error);
    const { host, port } = link.address;
    const isKnown = link.failure?.reason === reason;
    if (link.connection !== undefined && !link.connection.session.closed) {
      // The connection works. A node that starts, or has too many streams, refuses this one only.
      link.failure = { reason, pauseMs: 0, atMs: performance.now() };
      if (!isKnown) logger.info('data-link.stream-refused', { node, host, port, reason });
      return;
    }
    const doubledMs = 2 * (link.failure?.pauseMs ?? 0);
    const pauseMs = Math.min(Math.max(doubledMs, FIRST_PAUSE_MS), MAX_PAUSE_MS);
    if (!isKnown)
      logger.warn('data-link.unavailable', {
        node,
        host,
        port,
        reason,
        message: `streams to '${node}' go through the store`,
        hint: `Allow TCP port ${port} from this node to ${host}.`,
      });
    link.failure = { reason, pauseMs, atMs: performance.now() };
  }

  [Symbol.dispose](): void {
    for (const session of this.#sessions) session.destroy();
    this.#links.clear();
  }
}

function isPausing({ failure }: Link): boolean {
  return failure !== undefined && performance.now() - failure.atMs < failure.pauseMs;
}

function describe(node: string, { address, connection, failure }: Link): DataLink {
  const { host, port } = address;
  const at = { node, address: { host, port } };
  if (failure !== undefined) return { ...at, path: 'store', reason: failure.reason };
  return { ...at, path: connection === undefined ? 'unused' : 'direct', reason: null };
}

function isSame(left: DataAddress, right: DataAddress): boolean {
  return (
    left.host === right.host && left.port === right.port && left.fingerprint === right.fingerprint
  );
}
