import { z } from 'zod';
import { pause } from '#shared/abort/until.ts';
import { every } from '#shared/clock/every.ts';
import type { HostRoom } from '#shared/contract/host-room.ts';
import { locateEndpoint } from '#shared/contract/locate-endpoint.ts';
import { machineChanges, type RunningMachine } from '#shared/contract/instance.ts';
import { isAppError } from '#shared/errors/app-error.ts';
import { parseJson } from '#shared/json/parse-json.ts';
import type { Logger } from '#shared/log/log.ts';
import type { Store } from '#shared/store/store.ts';
import { readLines } from '#shared/text/lines.ts';
import { MIB } from '#shared/units/bytes.ts';
import { OFFLINE_HINT } from './membership.ts';
import { openAnswer, UnreachableNode, type Peers } from '../peers/ask-peer.ts';
import { NODES, type NodeRegistry } from '../../records/node-registry.ts';

/** A node's report of its running instances. A silent node differs from a failing one. */
export type NodeFacts =
  | {
      readonly state: 'told';
      readonly running: ReadonlyMap<string, RunningMachine>;
      /** Null from a node of an earlier release. */
      readonly room: HostRoom | null;
    }
  | { readonly state: 'silent' | 'failing' | 'offline' };

/** Returns whether the node answered with an error or nonsense. */
function isRefusal(error: unknown): boolean {
  const isSilence = isAppError(error, 'NODE_UNREACHABLE') || isAppError(error, 'STORE_UNAVAILABLE');
  const isNonsense = error instanceof z.ZodError || error instanceof RangeError;
  return (isAppError(error) && !isSilence) || isNonsense;
}

/** Returns the state of a node after a failed request. */
export function stateAfter(error: unknown): 'silent' | 'failing' | 'offline' {
  if (isAppError(error, 'NODE_OFFLINE')) return 'offline';
  return isRefusal(error) ? 'failing' : 'silent';
}

export interface RunningElsewhereDependencies {
  readonly nodeName: string;
  readonly peers: Peers;
  readonly nodes: Pick<NodeRegistry, 'list'>;
  readonly store: Pick<Store, 'watch'>;
  readonly logger: Logger;
}

/** A node without an answer in this time is shown as silent. */
export const ANSWER_TIMEOUT_MS = 3000;
const ASK_AGAIN_MS = 1000;
/**
 * Each request to a mute node occupies one of the few places for hellos until its timeout, so the
 * interval grows.
 */
const ASK_MUTE_AGAIN_MS = 30_000;
/** Nodes of the former release do not log that they joined or left. */
const LOOK_AGAIN_MS = 60_000;
/** A line has all running instances of a node, about 200 characters each. */
const MAX_LINE_CHARACTERS = 8 * MIB;

interface Followed {
  readonly ended: AbortController;
  /** Resolves with the first facts or failure. */
  readonly first: Promise<void>;
  facts: NodeFacts;
}

/**
 * Follows the running instances of the other nodes, which report changes by themselves.
 */
export class RunningElsewhere implements AsyncDisposable {
  readonly #dependencies: RunningElsewhereDependencies;
  readonly #followed = new Map<string, Followed>();
  /** Nodes marked offline, which receive no requests. */
  #offline: readonly string[] = [];
  /** Whether this node is marked offline. */
  #isOffline = false;
  readonly #watch: ReturnType<Store['watch']>;
  readonly #lookingAgain: Disposable;
  #looking: Promise<void> = Promise.resolve();
  #isEnded = false;

  constructor(dependencies: RunningElsewhereDependencies) {
    this.#dependencies = dependencies;
    const look = (): void => {
      this.#looking = this.#looking.then(() => this.#look());
    };
    this.#watch = dependencies.store.watch(NODES, look);
    this.#lookingAgain = every(LOOK_AGAIN_MS, look);
  }

  /** Returns facts by node. Unknown nodes are missing. */
  async facts(): Promise<ReadonlyMap<string, NodeFacts>> {
    await this.#watch.caughtUp();
    await this.#looking;
    await Promise.all([...this.#followed.values()].map(({ first }) => first));
    return new Map([
      ...[...this.#followed].map(([node, { facts }]) => [node, facts] as const),
      ...this.#offline.map((node) => [node, { state: 'offline' }] as const),
    ]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isEnded = true;
    this.#lookingAgain[Symbol.dispose]();
    this.#watch.end();
    for (const { ended } of this.#followed.values()) ended.abort();
    await this.#looking;
  }

  async #look(): Promise<void> {
    const { nodes, nodeName, logger } = this.#dependencies;
    try {
      const all = await nodes.list();
      if (this.#isEnded) return;
      this.#tellMark(all.some(({ name, flags }) => name === nodeName && flags.offline));
      const others = all.filter(({ name }) => name !== nodeName);
      const online = others.filter(({ flags }) => !flags.offline).map(({ name }) => name);
      const names = new Set(online);
      this.#offline = others.filter(({ flags }) => flags.offline).map(({ name }) => name);
      for (const [node, { ended }] of this.#followed) {
        if (names.has(node)) continue;
        ended.abort();
        this.#followed.delete(node);
      }
      for (const node of names) {
        if (!this.#followed.has(node)) this.#begin(node);
      }
    } catch (error) {
      // The next change of the store or the timer retries.
      logger.debug('nodes.not-read', { err: error });
    }
  }

  /** Logs the mark here, because other nodes do not ask an offline node. */
  #tellMark(isOffline: boolean): void {
    const { logger, nodeName: node } = this.#dependencies;
    if (isOffline === this.#isOffline) return;
    this.#isOffline = isOffline;
    if (isOffline) logger.warn('node.offline', { node, hint: OFFLINE_HINT });
    else logger.info('node.online', { node });
  }

  #begin(node: string): void {
    const ended = new AbortController();
    const first = Promise.withResolvers<void>();
    const followed: Followed = { ended, first: first.promise, facts: { state: 'silent' } };
    this.#followed.set(node, followed);
    ended.signal.addEventListener('abort', () => first.resolve());
    void this.#follow(node, followed, first.resolve);
  }

  async #follow(node: string, followed: Followed, isKnown: () => void): Promise<void> {
    const { signal } = followed.ended;
    let pauseMs = ASK_AGAIN_MS;
    while (!signal.aborted) {
      try {
        await this.#readFrom(node, followed, isKnown);
        followed.facts = { state: 'silent' };
        pauseMs = ASK_AGAIN_MS;
      } catch (error) {
        const isMute = error instanceof UnreachableNode && error.isThere;
        pauseMs = isMute ? Math.min(2 * pauseMs, ASK_MUTE_AGAIN_MS) : ASK_AGAIN_MS;
        followed.facts = { state: stateAfter(error) };
        this.#dependencies.logger.debug('node.not-followed', { node, err: error });
      }
      isKnown();
      await pause(pauseMs, signal, { ref: false });
    }
  }

  /** Reads until the other node or the connection ends. */
  async #readFrom(node: string, followed: Followed, isKnown: () => void): Promise<void> {
    const begins = { withinMs: ANSWER_TIMEOUT_MS, signal: followed.ended.signal };
    const { peers } = this.#dependencies;
    const answer = await openAnswer(peers, node, locateEndpoint('GET /v1/machines/events'), begins);
    const running = new Map<string, RunningMachine>();
    let room: HostRoom | null = null;
    for await (const line of readLines(answer, MAX_LINE_CHARACTERS)) {
      const changes = machineChanges.parse(parseJson(line));
      if (changes.isFirst) running.clear();
      for (const uuid of changes.ended) running.delete(uuid);
      for (const machine of changes.running) running.set(machine.uuid, machine);
      room = changes.room ?? room;
      followed.facts = { state: 'told', running, room };
      isKnown();
    }
  }
}
