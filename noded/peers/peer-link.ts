import { randomBytes } from 'node:crypto';
import nacl from 'tweetnacl';
import { instanceName } from '#shared/contract/primitives.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { Logger } from '#shared/log/log.ts';
import type { RedisServer } from '#shared/store/store-url.ts';
import { encodeKey, type NodeKey } from '../records/node-key.ts';
import type { NodeRegistry } from '../records/node-registry.ts';
import type { Side } from './frame.ts';
import { decodeKey, openGreeting, sealGreeting } from './handshake.ts';
import { Mailbox } from './mailbox.ts';
import { PeerStream } from './peer-stream.ts';

/** Streams at a time, and how many of them may be on their way to be one. */
const MAX_STREAMS = 256;
const MAX_GREETINGS = 32;
const ANSWER_TIMEOUT_MS = 3000;
/**
 * A hello that is followed by nothing was not sent by who it names: it is somebody's copy of an old
 * one.
 */
const CONFIRM_TIMEOUT_MS = 5000;
const SILENCE_MS = 5000;
const MAX_SILENCE_MS = 20_000;

/** A message: its kind, the id of its stream, and what the kind says. */
const HELLO = 1;
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
  readonly stream: PeerStream;
  isConfirmed: boolean;
}

/**
 * Streams between the node daemons of a cluster, by way of their common Redis, which sees neither
 * content nor keys.
 *
 * A hello is sealed between the two nodes' own keys (nacl box) and carries a key that is made for
 * the stream, the welcome carries the other; frames are sealed with what the two give together, so
 * that old traffic stays closed when a node's key is stolen. What was not sealed by a node of the
 * cluster for this one is dropped without an answer.
 */
export interface PeerLink extends AsyncDisposable {
  /** Gets each stream that another node opened. */
  onStream: (stream: PeerStream) => void;
  /** @throws AppError NODE_NOT_FOUND, NODE_UNREACHABLE, STORE_UNAVAILABLE */
  open(node: string): Promise<PeerStream>;
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
  readonly #timer: NodeJS.Timeout;
  #greetings = 0;
  #mailbox: Mailbox | undefined;
  onStream: (stream: PeerStream) => void = (stream) => stream.destroy();

  private constructor(options: PeerLinkOptions) {
    this.#options = options;
    this.#timer = setInterval(() => {
      for (const stream of this.#streams()) stream.keepAlive(SILENCE_MS, MAX_SILENCE_MS);
    }, SILENCE_MS);
    this.#timer.unref();
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

  async open(node: string): Promise<PeerStream> {
    const theirKey = decodeKey((await this.#options.nodes.publicKeyOf(node)) ?? '');
    if (theirKey === undefined) {
      throw new AppError('NODE_NOT_FOUND', `there is no node '${node}' in this cluster`, {
        hint: 'gnt-node list shows the nodes',
      });
    }
    if (this.#opened.size + this.#openings.size >= MAX_STREAMS) {
      throw new AppError('CONFLICT', 'too many connections to other nodes are open', {
        hint: 'wait until some have ended',
      });
    }
    const id = randomBytes(ID_BYTES).toString('hex');
    const welcome = Promise.withResolvers<PeerStream>();
    welcome.promise.catch(() => undefined); // may come while the hello is being sent
    const timer = setTimeout(() => welcome.reject(unreachable(node)), ANSWER_TIMEOUT_MS);
    try {
      const taken = await this.#sendHello(node, id, theirKey, welcome.resolve);
      if (taken === 0) throw unreachable(node);
      return await welcome.promise;
    } finally {
      clearTimeout(timer);
      this.#openings.delete(id);
    }
  }

  #sendHello(
    node: string,
    id: string,
    theirKey: Uint8Array,
    resolve: (stream: PeerStream) => void,
  ): Promise<number> {
    const { nodeName, key } = this.#options;
    const own = nacl.box.keyPair();
    const answers = encodeKey(own.publicKey);
    const welcomed = (sealed: Buffer): void => {
      const expected = { kind: 'welcome', stream: id, from: node, to: nodeName } as const;
      const answer = openGreeting(sealed, expected, theirKey, key.secretKey);
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
      theirKey,
      key.secretKey,
    );
    const name = Buffer.from(nodeName);
    return this.#send(node, HELLO, id, Buffer.concat([Buffer.from([name.length]), name, hello]));
  }

  #receive(bytes: Buffer): void {
    if (bytes.length <= 1 + ID_BYTES || bytes.length > MAX_MESSAGE_BYTES) return;
    const id = bytes.subarray(1, 1 + ID_BYTES).toString('hex');
    const rest = bytes.subarray(1 + ID_BYTES);
    if (bytes[0] === HELLO) void this.#welcome(id, rest);
    else if (bytes[0] === WELCOME) this.#openings.get(id)?.welcomed(rest);
    else if (bytes[0] === FRAME) this.#receiveFrame(id, rest);
  }

  #receiveFrame(id: string, bytes: Buffer): void {
    this.#opened.get(id)?.receive(bytes);
    const accepted = this.#accepted.get(id);
    if (accepted === undefined || !accepted.stream.receive(bytes) || accepted.isConfirmed) return;
    accepted.isConfirmed = true;
    this.onStream(accepted.stream);
  }

  /** Answers a hello, if a node of the cluster sealed it. */
  async #welcome(id: string, bytes: Buffer): Promise<void> {
    const { nodeName, key, nodes, logger } = this.#options;
    const nameEnd = 1 + (bytes[0] ?? 0);
    const from = bytes.subarray(1, nameEnd).toString();
    const isFull = this.#greetings >= MAX_GREETINGS || this.#accepted.size >= MAX_STREAMS;
    // One of our own that reached us is for a twin of this node.
    if (isFull || !instanceName.safeParse(from).success || this.#openings.has(id)) return;
    this.#greetings += 1;
    try {
      const theirKey = decodeKey((await nodes.publicKeyOf(from)) ?? '');
      if (theirKey === undefined) return;
      const expected = { kind: 'hello', stream: id, from, to: nodeName } as const;
      const hello = openGreeting(bytes.subarray(nameEnd), expected, theirKey, key.secretKey);
      const theirs = hello && decodeKey(hello.key);
      if (hello === undefined || theirs === undefined || this.#accepted.has(id)) return;
      const own = nacl.box.keyPair();
      this.#accept(from, id, nacl.box.before(theirs, own.secretKey));
      const answer = {
        ...({ kind: 'welcome', stream: id, from: nodeName, to: from } as const),
        ...{ key: encodeKey(own.publicKey), answers: hello.key },
      };
      await this.#send(from, WELCOME, id, sealGreeting(answer, theirKey, key.secretKey));
    } catch (error) {
      logger.debug('peers.not-welcomed', { node: from, err: error });
    } finally {
      this.#greetings -= 1;
    }
  }

  #accept(from: string, id: string, key: Uint8Array): void {
    const stream = this.#createStream(from, id, key, 1, () => this.#accepted.delete(id));
    const accepted: Accepted = { stream, isConfirmed: false };
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
      if ((await this.#send(node, FRAME, id, frame)) === 0) throw unreachable(node);
    };
    const stream = new PeerStream({ key, side, send, onClosed });
    // Who uses it hears of it too; before that, and after, nobody needs to.
    stream.on('error', () => undefined);
    return stream;
  }

  #send(node: string, kind: number, id: string, rest: Buffer): Promise<number> {
    const message = Buffer.concat([Buffer.from([kind]), Buffer.from(id, 'hex'), rest]);
    if (this.#mailbox === undefined) return Promise.resolve(0);
    return this.#mailbox.send(node, message);
  }

  /** Two daemons under one name would each take the other's guests for its own. */
  async #refuseTwin(): Promise<void> {
    const { nodeName } = this.#options;
    if (this.#mailbox === undefined || (await this.#mailbox.countOwners()) < 2) return;
    const twin = await this.open(nodeName).catch(() => undefined);
    if (twin === undefined) return;
    twin.destroy();
    throw new AppError('CONFLICT', `another gnt-noded runs as node '${nodeName}' of this cluster`, {
      hint: 'its node.key was copied: remove it on the copy, and start that with another --node',
    });
  }

  #streams(): readonly PeerStream[] {
    return [...this.#opened.values(), ...[...this.#accepted.values()].map(({ stream }) => stream)];
  }

  #destroyAll(): void {
    for (const stream of this.#streams())
      stream.destroy(Object.assign(new Error('the store was lost'), { code: 'ECONNRESET' }));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer);
    for (const stream of this.#streams()) stream.destroy();
    await this.#mailbox?.[Symbol.asyncDispose]();
  }
}

function unreachable(node: string): AppError {
  return new AppError('NODE_UNREACHABLE', `node '${node}' does not answer`, {
    details: { node },
    hint: `is gnt-noded running there, and does it reach the store?`,
  });
}
