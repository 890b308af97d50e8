import { z } from 'zod';
import { doctorReport, listedNode, nodeInfo } from '#shared/contract/api.ts';
import type { DoctorReport, NodeInfo } from '#shared/contract/api.ts';
import type { Overview } from '../cluster/overview.ts';
import { flag, question, route, type AnyApiRoute } from './api-route.ts';

export interface NodeRoutesDependencies {
  readonly overview: Pick<Overview, 'nodes'>;
  readonly describeNode: () => Promise<NodeInfo>;
  readonly removeNode: (
    name: string,
    options: { readonly forgetInstances: boolean },
  ) => Promise<void>;
  readonly examine: () => Promise<DoctorReport>;
  /** Prometheus text of this daemon. */
  readonly metrics: () => Promise<string>;
}

export function nodeRoutes(dependencies: NodeRoutesDependencies): readonly AnyApiRoute[] {
  const { overview, describeNode, removeNode, examine, metrics } = dependencies;
  return [
    question('/v1/node', 'The node that is asked', nodeInfo, describeNode),
    question('/v1/nodes', 'All nodes', listedNode.array(), async () => [
      ...(await overview.nodes()),
    ]),
    route({
      method: 'DELETE',
      path: '/v1/nodes/{name}',
      summary: 'Takes a node that is gone for good out of the cluster',
      query: z.object({ 'forget-instances': flag('1: the instances that it had too') }),
      answers: { 204: null },
      handle: async ({ params, query }) => {
        await removeNode(params.name, { forgetInstances: query['forget-instances'] === '1' });
        return { status: 204 };
      },
    }),
    question(
      '/v1/doctor',
      'Whether installations can work here, and what to do',
      doctorReport,
      examine,
    ),
    route({
      method: 'GET',
      path: '/metrics',
      summary: 'Prometheus text',
      answers: { 200: { type: 'text/plain' } },
      handle: async () => ({
        status: 200,
        type: 'text/plain; version=0.0.4; charset=utf-8',
        body: await metrics(),
      }),
    }),
  ];
}
