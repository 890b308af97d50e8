import type { IncomingMessage } from 'node:http';
import { addAbortSignal } from 'node:stream';
import { abortReason } from '#shared/abort/abortable.ts';
import { locateEndpoint } from '#shared/contract/locate-endpoint.ts';
import { AppError, messageOf } from '#shared/errors/app-error.ts';
import type { Logger } from '#shared/log/log.ts';
import type { ByteSource, Opened } from '../../content/downloads/transfer/byte-source.ts';
import type { Neighbours } from '../../content/images/neighbours.ts';
import type { NodeRegistry } from '../../records/node-registry.ts';
import { openAnswer } from '../peers/ask-peer.ts';
import type { NodeLinks } from '../peers/node-links.ts';

/** Nodes that are asked at a time, and for one content. */
const GROUP = 8;
const MAX_ASKED = 32;
/** Without the time to connect. */
const ANSWER_TIMEOUT_MS = 4000;

export interface NeighbourImagesOptions {
  readonly nodeName: string;
  readonly nodes: Pick<NodeRegistry, 'list'>;
  readonly peers: Pick<NodeLinks, 'openDirect'>;
  readonly logger: Logger;
}

interface Sender {
  readonly node: string;
  readonly answer: IncomingMessage;
}

/**
 * Reads cached images of other nodes, over data links only: Redis must not carry them. Each node is
 * asked once for a content, in random order.
 */
export function createNeighbourImages(options: NeighbourImagesOptions): Neighbours {
  return {
    sourceOf: (checksum, onNode): ByteSource => {
      const display = `image ${checksum.slice(0, 19)}…`;
      let left: readonly string[] | undefined;
      let wasFound = false;
      return {
        display,
        open: async ({ offset, signal }): Promise<Opened> => {
          left ??= await listOthers(options);
          while (left.length > 0) {
            const group = left.slice(0, GROUP);
            const sender = await askGroup(group, { checksum, offset, signal }, options);
            left = sender ? left.filter((node) => node !== sender.node) : left.slice(GROUP);
            if (sender === undefined) continue;
            wasFound = true;
            onNode(sender.node);
            return describeAnswer(sender, { checksum, offset, signal });
          }
          throw wasFound
            ? new AppError('NODE_UNREACHABLE', `no further node has the ${display}`)
            : new AppError('IMAGE_NOT_FOUND', `no other node has the ${display}`);
        },
      };
    },
  };
}

async function listOthers({ nodes, nodeName }: NeighbourImagesOptions): Promise<string[]> {
  const listed = await nodes.list();
  return listed
    .filter(({ name, flags }) => name !== nodeName && !flags.offline)
    .map(({ name }) => ({ name, order: Math.random() }))
    .sort((left, right) => left.order - right.order)
    .slice(0, MAX_ASKED)
    .map(({ name }) => name);
}

interface Question {
  readonly checksum: string;
  readonly offset: number;
  readonly signal: AbortSignal;
}

/** Returns the first answer of several nodes, and closes all others. */
async function askGroup(
  group: readonly string[],
  question: Question,
  options: NeighbourImagesOptions,
): Promise<Sender | undefined> {
  const asked = group.map((node) => {
    const controller = new AbortController();
    const signal = AbortSignal.any([question.signal, controller.signal]);
    return { node, controller, answer: ask(node, { ...question, signal }, options) };
  });
  try {
    const sender = await Promise.any(
      asked.map(async ({ node, answer }) => ({ node, answer: await answer })),
    );
    for (const { node, controller } of asked)
      if (node !== sender.node) controller.abort(new Error('another node answered'));
    return sender;
  } catch {
    question.signal.throwIfAborted();
    return undefined;
  }
}

/** @throws Error if the node does not have the content, or cannot be asked */
async function ask(
  node: string,
  { checksum, offset, signal }: Question,
  { peers, logger }: NeighbourImagesOptions,
): Promise<IncomingMessage> {
  try {
    const query = offset === 0 ? {} : { offset };
    const located = locateEndpoint('GET /v1/image-contents/{checksum}', { checksum, query });
    const direct = { open: () => openDirect(peers, node) };
    const answer = await openAnswer(direct, node, located, {
      withinMs: ANSWER_TIMEOUT_MS,
      signal,
    });
    // An unread stream that is closed must not end the program.
    answer.on('error', () => undefined);
    return addAbortSignal(signal, answer);
  } catch (error) {
    logger.debug('images.neighbour-without', { node, checksum, reason: messageOf(error) });
    throw error;
  }
}

async function openDirect(peers: NeighbourImagesOptions['peers'], node: string) {
  const stream = await peers.openDirect(node);
  if (stream !== undefined) return stream;
  throw new AppError('NODE_UNREACHABLE', `there is no data link to node '${node}'`);
}

/** @throws Error for an answer of unknown size, which could be endless */
function describeAnswer({ node, answer }: Sender, { checksum, offset, signal }: Question): Opened {
  const restBytes = Number(answer.headers['content-length'] ?? Number.NaN);
  if (!Number.isSafeInteger(restBytes)) {
    answer.destroy();
    throw new Error(`node '${node}' does not state the size of the image`);
  }
  return {
    kind: 'body',
    offset,
    totalBytes: offset + restBytes,
    // The version is the content itself.
    validators: { etag: `"${checksum}"`, lastModified: null },
    body: readBody(node, answer, signal),
  };
}

async function* readBody(
  node: string,
  answer: IncomingMessage,
  signal: AbortSignal,
): AsyncGenerator<Buffer, void> {
  try {
    // Without an encoding the chunks are Buffers.
    yield* answer as AsyncIterable<Buffer>;
  } catch (error) {
    if (signal.aborted) throw abortReason(signal);
    throw new Error(`node '${node}' stopped sending: ${messageOf(error)}`, { cause: error });
  } finally {
    answer.destroy();
  }
}
