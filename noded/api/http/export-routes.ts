import { exportInfo } from '#shared/contract/api.ts';
import type { ExportStore } from '../../instances/backup/export-store.ts';
import { question, type AnyApiRoute } from './api-route.ts';

export interface ExportRoutesDependencies {
  readonly exports: Pick<ExportStore, 'list'>;
}

export function exportRoutes({ exports }: ExportRoutesDependencies): readonly AnyApiRoute[] {
  return [
    question('/v1/exports', 'Lists the exports on this node', exportInfo.array(), async () => [
      ...(await exports.list()),
    ]),
  ];
}
