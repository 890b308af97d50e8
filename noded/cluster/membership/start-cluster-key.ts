import type { CryptoProgress, KeyStep } from '#shared/contract/api.ts';
import { AppError, isAppError } from '#shared/errors/app-error.ts';
import type { Logger } from '#shared/log/log.ts';
import { askPeer, presenceOf, type Peers } from '../peers/ask-peer.ts';
import type { CommonStore } from '../../records/open-store.ts';
import type { NodeRegistry } from '../../records/node-registry.ts';
import { KeyRenewal, type Renewed } from './renew-key.ts';
import type { ClusterKeys } from '#shared/store/cluster-keys.ts';
import type { SealedStore } from '#shared/store/sealed-store.ts';

export interface ClusterKey extends AsyncDisposable {
  renew(skip: readonly string[]): Promise<Renewed>;
  progress(): CryptoProgress;
  takeStep(step: KeyStep): Promise<void>;
  describe(): Promise<string | null>;
}

/** A node seals a record in a moment; its disk may be slow. */
const STEP_TIMEOUT_MS = 60_000;

export interface ClusterKeyDependencies {
  readonly nodeName: string;
  readonly common: CommonStore;
  readonly peers: Peers;
  readonly nodes: Pick<NodeRegistry, 'names'>;
  readonly logger: Logger;
}

/** Continues a renewal that a stop of this node interrupted. */
export function startClusterKey(dependencies: ClusterKeyDependencies): ClusterKey {
  const { nodeName, common, peers, nodes, logger } = dependencies;
  const { sealed: store, keys } = common;
  const renewal: KeyRenewal = new KeyRenewal({
    nodeName,
    store,
    keys,
    logger,
    nodeNames: () => nodes.names(),
    answers: async (node) => (await presenceOf(peers, node)) === 'answers',
    // A running node that is marked offline must not miss the renewal.
    tell: (node, step) => tell({ open: (to) => peers.open(to, { evenOffline: true }) }, node, step),
  });
  renewal.resume();
  return {
    renew: (skip) => renewal.renew(skip),
    progress: () => renewal.progress(),
    takeStep: (step) => takeKeyStep(step, keys, store),
    describe: () => renewal.describe(),
    [Symbol.asyncDispose]: () => renewal.stop(),
  };
}

/** For a node without a common store, which seals nothing. */
export function noClusterKey(): ClusterKey {
  const refuse = (): Promise<never> =>
    Promise.reject(
      new AppError('NOT_SUPPORTED', 'this node is a cluster of its own and has no cluster key', {
        hint: 'Only a cluster with a common store has a key: gnt-cluster init --store redis://HOST',
      }),
    );
  return {
    renew: refuse,
    progress: () => ({ renewals: 0, done: [] }),
    takeStep: refuse,
    describe: () => Promise.resolve(null),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}

async function tell(peers: Peers, node: string, step: KeyStep): Promise<void> {
  const signal = AbortSignal.timeout(STEP_TIMEOUT_MS);
  try {
    await askPeer(peers, node, 'POST /v1/cluster/key-steps', { body: step, signal });
  } catch (error) {
    if (isAppError(error) && error.code !== 'NODE_UNREACHABLE') throw error;
    throw new AppError('NODE_UNREACHABLE', `node '${node}' does not answer`, {
      details: { node },
      hint: `The renewal continues when the node answers. Leave it out: gnt-cluster renew-crypto --skip ${node}`,
      cause: error,
    });
  }
}

/** Takes one step on this node. Idempotent. @throws AppError CONFLICT */
export async function takeKeyStep(
  step: KeyStep,
  keys: ClusterKeys,
  store: Pick<SealedStore, 'settle'>,
): Promise<void> {
  switch (step.step) {
    case 'learn':
      return keys.learn(Buffer.from(step.key, 'base64'));
    case 'seal':
      await keys.sealWith(Buffer.from(step.key, 'base64'));
      return store.settle();
    case 'forget':
      return keys.forgetOthers(step.fingerprint);
  }
}
