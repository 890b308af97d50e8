import { randomBytes } from 'node:crypto';
import PQueue from 'p-queue';
import nacl from 'tweetnacl';
import { every } from '#shared/clock/every.ts';
import { requireOnline } from '#shared/contract/node-flags.ts';
import { instanceName } from '#shared/contract/primitives.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { Logger } from '#shared/log/log.ts';
import type { RedisServer } from '#shared/store/store-url.ts';
import { encodeKey, type NodeKey } from '../../records/node-key.ts';
import type { NodeRegistry } from '../../records/node-registry.ts';
import { UnreachableNode } from './ask-peer.ts';
import type { Side } from './frame.ts';
import { decodeKey, openGreeting, sealGreeting } from './handshake.ts';
import { Mailbox } from './mailbox.ts';
import { PeerStream } from './peer-stream.ts';
import { hasItsShare, MAX_STREAMS, WindowPool } from './receive-window.ts';

/** Concurrent answers to hellos. As many others wait as there may be streams. */
const MAX_GREETINGS = 32;
/** Hellos of this node without an answer. Further ones wait. */
const MAX_OPENINGS = 16;
const MAX_SHARED_KEYS = 4096;
const ANSWER_TIMEOUT_MS = 3000;
/** Without a frame after it, a hello may be a copy of an earlier one. */
const CONFIRM_TIMEOUT_MS = 5000;
const SILENCE_MS = 5000;
const MAX_SILENCE_MS = 20_000;

/**
 * A message contains its kind, the id of its stream, and a body. Kind 1 was the hello of a release
 * with another first window and is not answered.
 */
const HELLO = 4;
const WELCOME = 2;
const FRAME = 3;
const ID_BYTES = 16;
const MAX_MESSAGE_BYTES = 64 * 1024;

export interface PeerLinkOptions {
  readonly server: RedisServer;
  readonly nodeName: string;
  readonly key: NodeKey;
  readonly nodes: NodeRegistry;
  readonly logger: Logger;
}

interface Opening {
  readonly welcomed: (sealed: Buffer) => void;
}

interface Accepted {
  readonly from: string;
  readonly stream: PeerStream;
  isConfirmed: boolean;
}

/**
 * Connects the node daemons of a cluster by streams through their common Redis, which sees neither
 * content nor keys.
 *
 * A hello is sealed with the two nodes' own keys (nacl box). The hello and its welcome each contain
 * a key made for this stream. Both keys together seal the frames, so that the theft of a node's key
 * does not reveal earlier traffic. Messages not sealed by a node of the cluster for this node are
 * dropped without an answer.
 */
export interface PeerLink extends AsyncDisposable {
  /** Called with each stream that another node opened, and that node's name. */
  onStream: (stream: PeerStream, from: string) => void;
  open(node: string, options?: { readonly evenOffline?: boolean }): Promise<PeerStream>;
  /** Returns the address of this host on its way to the store; undefined for a unix socket. */
  localAddress(): string | undefined;
}

/** @throws AppError STORE_UNAVAILABLE; CONFLICT when another daemon with this node's key answers */
export function startPeerLink(options: PeerLinkOptions): Promise<PeerLink> {
  return MailboxLink.start(options);
}

class MailboxLink implements PeerLink {
  readonly #options: PeerLinkOptions;
  readonly #openings = new Map<string, Opening>();
  readonly #opened = new Map<string, PeerStream>();
  readonly #accepted = new Map<string, Accepted>();
  readonly #keepingAlive: Disposable;
  readonly #pool = new WindowPool();
  /** Shared secrets by the other node's public key. */
  readonly #shared = new Map<string, Uint8Array>();
  readonly #opening = new PQueue({ concurrency: MAX_OPENINGS });
  readonly #greetings = new PQueue({ concurrency: MAX_GREETINGS });
  #mailbox: Mailbox | undefined;
  onStream: PeerLink['onStream'] = (stream) => stream.destroy();

  private constructor(options: PeerLinkOptions) {
    this.#options = options;
    this.#keepingAlive = every(SILENCE_MS, () => {
      for (const stream of this.#streams()) stream.keepAlive(SILENCE_MS, MAX_SILENCE_MS);
    });
  }

  static async start(options: PeerLinkOptions): Promise<MailboxLink> {
    const link = new MailboxLink(options);
    try {
      link.#mailbox = await Mailbox.open({
        server: options.server,
        node: options.nodeName,
        onMessage: (bytes) => link.#receive(bytes),
        onLost: () => link.#destroyAll(),
        logger: options.logger,
      });
      await link.#refuseTwin();
      return link;
    } catch (error) {
      await link[Symbol.asyncDispose]();
      throw error;
    }
  }

  async open(node: string, options: { readonly evenOffline?: boolean } = {}): Promise<PeerStream> {
    if (options.evenOffline !== true) requireOnline(node, await this.#options.nodes.flagsOf(node));
    const shared = this.#sharedWith((await this.#options.nodes.publicKeyOf(node)) ?? '');
    if (shared === undefined) {
      throw new AppError('NODE_NOT_FOUND', `there is no node '${node}' in this cluster`, {
        hint: 'gnt-node list shows the nodes',
      });
    }
    const underWay = this.#opening.size + this.#opening.pending;
    if (this.#opened.size + underWay >= MAX_STREAMS) {
      throw new AppError('CONFLICT', 'too many connections to other nodes are open', {
        hint: 'Wait until some have ended.',
      });
    }
    // Queued, so that the timeout of an answer starts with its hello.
    return this.#opening.add(() => this.#openWith(node, shared));
  }

  localAddress(): string | undefined {
    return this.#mailbox?.localAddress();
  }

  async #openWith(node: string, shared: Uint8Array): Promise<PeerStream> {
    const id = randomBytes(ID_BYTES).toString('hex');
    const welcome = Promise.withResolvers<PeerStream>();
    welcome.promise.catch(() => undefined); // may reject while the hello is being sent
    // Only relevant after a node received the hello.
    const timer = setTimeout(
      () => welcome.reject(new UnreachableNode(node, { isThere: true })),
      ANSWER_TIMEOUT_MS,
    );
    try {
      const taken = await this.#sendHello(node, id, shared, welcome.resolve);
      if (taken === 0) throw new UnreachableNode(node, { isThere: false });
      return await welcome.promise;
    } finally {
      clearTimeout(timer);
      this.#openings.delete(id);
    }
  }

  #sendHello(
    node: string,
    id: string,
    shared: Uint8Array,
    resolve: (stream: PeerStream) => void,
  ): Promise<number> {
    const { nodeName } = this.#options;
    const own = nacl.box.keyPair();
    const answers = encodeKey(own.publicKey);
    const welcomed = (sealed: Buffer): void => {
      const expected = { kind: 'welcome', stream: id, from: node, to: nodeName } as const;
      const answer = openGreeting(sealed, expected, shared);
      const theirs = answer?.answers === answers ? decodeKey(answer.key) : undefined;
      if (theirs === undefined) return;
      this.#openings.delete(id);
      const stream = this.#createStream(node, id, nacl.box.before(theirs, own.secretKey), 0, () =>
        this.#opened.delete(id),
      );
      this.#opened.set(id, stream);
      resolve(stream);
    };
    this.#openings.set(id, { welcomed });
    const hello = sealGreeting(
      { kind: 'hello', stream: id, from: nodeName, to: node, key: answers, answers: null },
      shared,
    );
    const name = Buffer.from(nodeName);
    return this.#send(node, HELLO, id, Buffer.concat([Buffer.from([name.length]), name, hello]));
  }

  #receive(bytes: Buffer): void {
    if (bytes.length <= 1 + ID_BYTES || bytes.length > MAX_MESSAGE_BYTES) return;
    const id = bytes.subarray(1, 1 + ID_BYTES).toString('hex');
    const rest = bytes.subarray(1 + ID_BYTES);
    if (bytes[0] === HELLO) this.#takeHello(id, rest);
    else if (bytes[0] === WELCOME) this.#openings.get(id)?.welcomed(rest);
    else if (bytes[0] === FRAME) this.#receiveFrame(id, rest);
  }

  #receiveFrame(id: string, bytes: Buffer): void {
    this.#opened.get(id)?.receive(bytes);
    const accepted = this.#accepted.get(id);
    if (accepted === undefined || !accepted.stream.receive(bytes) || accepted.isConfirmed) return;
    accepted.isConfirmed = true;
    this.onStream(accepted.stream, accepted.from);
  }

  /** A hello needs a query of the store and some arithmetic, so a burst is queued. */
  #takeHello(id: string, bytes: Buffer): void {
    const nameEnd = 1 + (bytes[0] ?? 0);
    const from = bytes.subarray(1, nameEnd).toString();
    const underWay = this.#greetings.size + this.#greetings.pending;
    const isFull = underWay + this.#accepted.size >= MAX_STREAMS;
    // A hello of this node means a twin.
    if (isFull || !instanceName.safeParse(from).success || this.#openings.has(id)) return;
    void this.#greetings.add(() => this.#welcome(from, id, bytes.subarray(nameEnd)));
  }

  /** Answers a hello that a node of the cluster sealed. */
  async #welcome(from: string, id: string, sealed: Buffer): Promise<void> {
    const { nodeName, nodes, logger } = this.#options;
    try {
      const shared = this.#sharedWith((await nodes.publicKeyOf(from)) ?? '');
      if (shared === undefined) return;
      const expected = { kind: 'hello', stream: id, from, to: nodeName } as const;
      const hello = openGreeting(sealed, expected, shared);
      const theirs = hello && decodeKey(hello.key);
      if (hello === undefined || theirs === undefined || this.#accepted.has(id)) return;
      const opened = [...this.#accepted.values()].map((one) => one.from);
      if (hasItsShare(from, opened)) return;
      const own = nacl.box.keyPair();
      this.#accept(from, id, nacl.box.before(theirs, own.secretKey));
      const answer = {
        kind: 'welcome' as const,
        stream: id,
        from: nodeName,
        to: from,
        key: encodeKey(own.publicKey),
        answers: hello.key,
      };
      await this.#send(from, WELCOME, id, sealGreeting(answer, shared));
    } catch (error) {
      logger.debug('peers.not-welcomed', { node: from, err: error });
    }
  }

  /** Cached, as the most expensive step of a greeting. @returns undefined for an invalid key */
  #sharedWith(publicKey: string): Uint8Array | undefined {
    const known = this.#shared.get(publicKey);
    if (known !== undefined) return known;
    const theirKey = decodeKey(publicKey);
    if (theirKey === undefined) return undefined;
    const shared = nacl.box.before(theirKey, this.#options.key.secretKey);
    // Only reached after many nodes joined and left.
    if (this.#shared.size >= MAX_SHARED_KEYS) this.#shared.clear();
    this.#shared.set(publicKey, shared);
    return shared;
  }

  #accept(from: string, id: string, key: Uint8Array): void {
    const stream = this.#createStream(from, id, key, 1, () => this.#accepted.delete(id));
    const accepted: Accepted = { from, stream, isConfirmed: false };
    this.#accepted.set(id, accepted);
    const timer = setTimeout(() => {
      if (!accepted.isConfirmed) stream.destroy();
    }, CONFIRM_TIMEOUT_MS);
    stream.once('close', () => clearTimeout(timer));
  }

  #createStream(
    node: string,
    id: string,
    key: Uint8Array,
    side: Side,
    onClosed: () => void,
  ): PeerStream {
    const send = async (frame: Buffer): Promise<void> => {
      if ((await this.#send(node, FRAME, id, frame)) === 0)
        throw new UnreachableNode(node, { isThere: false });
    };
    const stream = new PeerStream({ key, side, pool: this.#pool, send, onClosed });
    // The user of the stream handles errors too. Before and after that they have no effect.
    stream.on('error', () => undefined);
    return stream;
  }

  #send(node: string, kind: number, id: string, rest: Buffer): Promise<number> {
    const message = Buffer.concat([Buffer.from([kind]), Buffer.from(id, 'hex'), rest]);
    if (this.#mailbox === undefined) return Promise.resolve(0);
    return this.#mailbox.send(node, message);
  }

  /**
   * Refuses a second daemon with this name, because each would take the other's guests for its own.
   */
  async #refuseTwin(): Promise<void> {
    const { nodeName, logger } = this.#options;
    if (this.#mailbox === undefined || (await this.#mailbox.countOwners()) < 2) return;
    const twin = await this.open(nodeName).catch(() => undefined);
    if (twin === undefined) {
      // Not refused: mostly a leftover connection of this node after a loss of power. Guests must
      // not wait until Redis notices that.
      if ((await this.#mailbox.countOwners()) > 1)
        logger.error('peers.silent-twin', {
          message: `another process receives the messages for node '${nodeName}' and does not answer`,
          hint: 'Check whether a gnt-noded of another release runs elsewhere under this name.',
        });
      return;
    }
    twin.destroy();
    throw new AppError('CONFLICT', `another gnt-noded runs as node '${nodeName}' of this cluster`, {
      hint: 'Its node.key was copied. Remove it on the copy, and start that node with another --node NAME.',
    });
  }

  #streams(): readonly PeerStream[] {
    return [...this.#opened.values(), ...[...this.#accepted.values()].map(({ stream }) => stream)];
  }

  #destroyAll(): void {
    for (const stream of this.#streams())
      stream.destroy(
        Object.assign(new Error('the connection to the store was lost'), { code: 'ECONNRESET' }),
      );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#keepingAlive[Symbol.dispose]();
    this.#greetings.clear();
    for (const stream of this.#streams()) stream.destroy();
    await this.#mailbox?.[Symbol.asyncDispose]();
  }
}
