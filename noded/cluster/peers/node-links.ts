import { isIP } from 'node:net';
import type { Duplex } from 'node:stream';
import type { DataLink, DataLinks as DescribedLinks } from '#shared/contract/data-links.ts';
import { requireOnline } from '#shared/contract/node-flags.ts';
import { AppError, messageOf } from '#shared/errors/app-error.ts';
import type { ListenAddress } from '#shared/socket/listen-address.ts';
import { encodeKey } from '../../records/node-key.ts';
import type { NodeRegistry } from '../../records/node-registry.ts';
import type { Peers } from './ask-peer.ts';
import { DataLinks } from './data-links.ts';
import { startDataListener } from './data-listener.ts';
import { makeNodeCertificate, type NodeCertificate } from './node-certificate.ts';
import { startPeerLink, type PeerLink, type PeerLinkOptions } from './peer-link.ts';

export const DEFAULT_DATA_PORT = 5082;

/** Streams to other nodes and from them: by data links, and through the store where these fail. */
export interface NodeLinks extends Peers, AsyncDisposable {
  /** Called with each stream that another node opened, and that node's name. */
  onStream: (stream: Duplex, from: string) => void;
  /**
   * Opens a stream that never goes through the store; undefined without a data link.
   * @throws AppError NODE_OFFLINE, STORE_UNAVAILABLE
   */
  openDirect(node: string): Promise<Duplex | undefined>;
  /** Describes the links that were used. */
  describe(): DescribedLinks;
  /** Tries the data link to a node now. @throws AppError STORE_UNAVAILABLE */
  probe(node: string): Promise<DataLink>;
}

export interface NodeLinksOptions extends PeerLinkOptions {
  readonly nodes: NodeRegistry;
  /** The operator's choice; null for the address of this host on its way to the store. */
  readonly dataAddress: ListenAddress | null;
}

interface Listening extends AsyncDisposable {
  readonly address: ListenAddress | null;
  readonly reason: string | null;
}

/**
 * Connects this node to the others, and announces its data address.
 * @throws AppError STORE_UNAVAILABLE; CONFLICT when another daemon with this node's key answers, or
 * the operator's address cannot be used
 */
export async function startNodeLinks(options: NodeLinksOptions): Promise<NodeLinks> {
  const { nodeName, key, nodes, logger } = options;
  await using undo = new AsyncDisposableStack();
  const throughStore = undo.use(await startPeerLink(options));
  const certificate = await makeNodeCertificate(nodeName);
  const direct = undo.use(new DataLinks({ nodes, certificate, logger }));
  const received: Pick<NodeLinks, 'onStream'> = { onStream: (stream) => stream.destroy() };
  throughStore.onStream = (stream, from) => received.onStream(stream, from);
  const onStream = (stream: Duplex, from: string): void => received.onStream(stream, from);
  const { address, reason } = undo.use(
    await listen(options, { certificate, throughStore, onStream }),
  );
  await nodes.announceDataAddress(
    nodeName,
    encodeKey(key.publicKey),
    address && { ...address, fingerprint: certificate.fingerprint },
  );
  if (address !== null) logger.info('data-link.listening', { ...address });
  const all = undo.move();
  const openDirect = async (node: string): Promise<Duplex | undefined> => {
    requireOnline(node, await nodes.flagsOf(node));
    return direct.open(node);
  };
  return Object.assign(received, {
    open: async (node: string, to: { readonly evenOffline?: boolean } = {}) => {
      const stream = await (to.evenOffline === true ? direct.open(node) : openDirect(node));
      return stream ?? throughStore.open(node, to);
    },
    openDirect,
    describe: () => ({ address, reason, links: [...direct.describe()] }),
    probe: (node: string) => direct.probe(node),
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  });
}

interface Inbound {
  readonly certificate: NodeCertificate;
  readonly throughStore: PeerLink;
  readonly onStream: NodeLinks['onStream'];
}

async function listen(options: NodeLinksOptions, inbound: Inbound): Promise<Listening> {
  const { dataAddress } = options;
  const chosen = dataAddress ?? defaultAddress(inbound.throughStore.localAddress());
  if (typeof chosen === 'string') return notListening(chosen);
  try {
    return await listenOn(chosen, options, inbound);
  } catch (error) {
    const reason = `${chosen.host}:${chosen.port}: ${messageOf(error)}`;
    if (dataAddress !== null) {
      throw new AppError('CONFLICT', `--data-address ${reason}`, {
        hint: 'Give an address of this host and a free port.',
        cause: error,
      });
    }
    options.logger.warn('data-link.not-listening', { reason });
    return notListening(reason);
  }
}

async function listenOn(
  { host, port }: ListenAddress,
  { nodes, logger }: NodeLinksOptions,
  { certificate, onStream }: Inbound,
): Promise<Listening> {
  const listener = await startDataListener({
    ...{ host, port, certificate, onStream, logger },
    fingerprintOf: async (node) => (await nodes.dataAddressOf(node))?.fingerprint,
  });
  return {
    address: { host, port: listener.port },
    reason: null,
    [Symbol.asyncDispose]: () => listener[Symbol.asyncDispose](),
  };
}

function notListening(reason: string): Listening {
  return { address: null, reason, [Symbol.asyncDispose]: () => Promise.resolve() };
}

/** @returns the reason if there is none */
function defaultAddress(local: string | undefined): ListenAddress | string {
  if (local === undefined) return 'the store is a socket on this host';
  if (/^(127\.|::1$|::ffff:127\.)/.test(local))
    return `this host reaches the store at ${local}, which other hosts do not reach`;
  // The zone of a link-local address has another name on each host.
  if (isIP(local) === 0 || /^fe80:/i.test(local))
    return `this host reaches the store at ${local}, which has no meaning on other hosts`;
  return { host: local, port: DEFAULT_DATA_PORT };
}
