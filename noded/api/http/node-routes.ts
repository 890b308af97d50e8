import type { DoctorReport, NodeInfo, NodeReport } from '#shared/contract/api.ts';
import type { exportEndpoints, nodeEndpoints } from '#shared/contract/endpoints.ts';
import type { Overview } from '../../cluster/membership/overview.ts';
import type { ExportStore } from '../../instances/backup/export-store.ts';
import { type Handlers, Reply } from './handlers.ts';

export interface NodeRoutesDependencies {
  readonly overview: Pick<Overview, 'nodes'>;
  readonly describeNode: () => Promise<NodeInfo>;
  readonly removeNode: (
    name: string,
    options: { readonly forgetInstances: boolean },
  ) => Promise<void>;
  readonly examine: () => Promise<DoctorReport>;
  readonly examineNodes: () => Promise<readonly NodeReport[]>;
  readonly exports: Pick<ExportStore, 'list'>;
  /** Returns the metrics of this daemon as Prometheus text. */
  readonly metrics: () => Promise<string>;
}

export function nodeRoutes(
  dependencies: NodeRoutesDependencies,
): Handlers<typeof nodeEndpoints & typeof exportEndpoints> {
  const { overview, describeNode, removeNode, examine, examineNodes, exports, metrics } =
    dependencies;
  return {
    'GET /v1/node': describeNode,
    'GET /v1/nodes': async () => [...(await overview.nodes())],
    'DELETE /v1/nodes/{name}': ({ params, query }) =>
      removeNode(params.name, { forgetInstances: query['forget-instances'] === '1' }),
    'GET /v1/doctor': examine,
    'GET /v1/doctor-of-nodes': async () => [...(await examineNodes())],
    'GET /v1/exports': async ({ query }) => [...(await exports.list(query.directory))],
    'GET /metrics': async () =>
      new Reply(200, await metrics(), { type: 'text/plain; version=0.0.4; charset=utf-8' }),
  };
}
