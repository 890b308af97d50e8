import { z } from 'zod';
import { doctorReport, listedNode, nodeInfo } from '#shared/contract/api.ts';
import type { DoctorReport, NodeInfo } from '#shared/contract/api.ts';
import type { Overview } from '../../cluster/membership/overview.ts';
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
    question('/v1/node', 'Describes this node', nodeInfo, describeNode),
    question('/v1/nodes', 'Lists all nodes', listedNode.array(), async () => [
      ...(await overview.nodes()),
    ]),
    route({
      method: 'DELETE',
      path: '/v1/nodes/{name}',
      summary: 'Removes a node that will not return from the cluster',
      query: z.object({ 'forget-instances': flag('1: remove its instances too') }),
      answers: { 204: null },
      handle: async ({ params, query }) => {
        await removeNode(params.name, { forgetInstances: query['forget-instances'] === '1' });
        return { status: 204 };
      },
    }),
    question(
      '/v1/doctor',
      'Checks whether installations can work on this node',
      doctorReport,
      examine,
    ),
    route({
      method: 'GET',
      path: '/metrics',
      summary: 'Returns the metrics of both daemons for Prometheus',
      answers: { 200: { type: 'text/plain' } },
      handle: async () => ({
        status: 200,
        type: 'text/plain; version=0.0.4; charset=utf-8',
        body: await metrics(),
      }),
    }),
  ];
}
