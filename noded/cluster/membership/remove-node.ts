import type { Clock } from '#shared/clock/clock.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { Membership } from './membership.ts';
import type { InstanceIndex } from '../../records/instance-index.ts';
import type { InstanceRepository } from '../../records/instance-repository.ts';
import { presenceOf, type Peers } from '../peers/ask-peer.ts';
import type { NodeRegistry } from '../../records/node-registry.ts';

export interface RemoveNodeDependencies {
  readonly nodeName: string;
  readonly nodes: NodeRegistry;
  readonly instances: Pick<InstanceRepository, 'forget' | 'departedFrom' | 'forgetDeparture'>;
  readonly index: Pick<InstanceIndex, 'list'>;
  /** Null for a node without a common store. */
  readonly peers: Peers | null;
  readonly membership: Pick<Membership, 'requireMember'>;
  readonly clock: Clock;
  /** Marks the node's running jobs as interrupted. */
  readonly failJobsOf: (node: string) => Promise<void>;
}

const MUTE_HINT =
  'It hangs, or runs another release: stop gnt-noded there first. If the host is off, Redis ' +
  'notices that after some minutes (at once: redis-cli CLIENT KILL TYPE pubsub)';

/**
 * Removes a permanently lost node from the cluster. A holder of the cluster key can still read the
 * store until the key is renewed.
 * @param options `forgetInstances`: also remove the records of its instances
 * @throws AppError NODE_NOT_FOUND; CONFLICT while the node answers or is mute, has instances that
 * are not to be forgotten, or is this node
 */
export async function removeNode(
  name: string,
  options: { readonly forgetInstances: boolean },
  dependencies: RemoveNodeDependencies,
): Promise<void> {
  const { nodeName, nodes, instances, index, peers, membership, clock, failJobsOf } = dependencies;
  membership.requireMember();
  const names = await nodes.names();
  if (!names.includes(name)) {
    throw new AppError('NODE_NOT_FOUND', `there is no node '${name}'`, {
      details: { name },
      hint: `The nodes are ${names.join(', ')}`,
    });
  }
  const refuse = (reason: string, hint: string): never => {
    throw new AppError('CONFLICT', `node '${name}' ${reason}`, { details: { name }, hint });
  };
  if (name === nodeName)
    refuse('is the node that received the command', 'Run the command on another node.');
  const presence = peers === null ? 'gone' : await presenceOf(peers, name);
  if (presence === 'answers') refuse('answers', 'Stop gnt-noded there first.');
  if (presence === 'mute') refuse('is connected to the store, but does not answer', MUTE_HINT);
  const lost = (await index.list()).filter(({ primaryNode }) => primaryNode === name);
  const [first] = lost;
  if (first !== undefined && !options.forgetInstances) {
    const hint =
      'Start the node and remove its instances. If they are lost with the node: --forget-instances';
    refuse(`has instances, ${first.name} among them`, hint);
  }
  for (const { uuid } of lost) await instances.forget(uuid, name);
  for (const uuid of await instances.departedFrom(name))
    await instances.forgetDeparture(uuid, name);
  await failJobsOf(name);
  await nodes.remove(name, clock.now());
}
