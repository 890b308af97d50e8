import type Router from '@koa/router';
import type { ApiDependencies } from './api-dependencies.ts';

export function addExportRoutes(router: Router, { exports }: ApiDependencies): void {
  router.get('/v1/exports', async (context) => {
    context.body = await exports.list();
  });
}
