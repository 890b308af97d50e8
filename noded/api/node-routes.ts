import type Router from '@koa/router';
import type { OsInfo } from '#shared/contract/api.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { describeParameters, osLayer, resolveParameters } from '../instances/os-parameters.ts';
import type { OsDiagnosis } from '../os/os-registry.ts';
import type { ApiDependencies } from './api-dependencies.ts';
import { describeApi } from './openapi.ts';

export function addNodeRoutes(router: Router, dependencies: ApiDependencies): void {
  const { clusters, instances, osRegistry } = dependencies;
  router.get('/v1/node', async (context) => {
    context.body = await dependencies.describeNode();
  });
  router.get('/v1/nodes', async (context) => {
    context.body = await dependencies.overview.nodes();
  });
  router.delete('/v1/nodes/:name', async (context) => {
    const forgetInstances = context.query['forget-instances'] === '1';
    await dependencies.removeNode(context.params['name'] ?? '', { forgetInstances });
    context.status = 204;
  });
  router.get('/v1/doctor', async (context) => {
    context.body = await dependencies.examine();
  });
  router.get('/v1/cluster', async (context) => {
    context.body = {
      ...(await clusters.load()),
      store: dependencies.storeDescription,
      nodes: [...(await dependencies.nodes.names())],
      instances: (await instances.list()).length,
    };
  });
  router.get('/v1/os', async (context) => {
    const found = await osRegistry.list();
    context.body = await Promise.all(found.map((diagnosis) => describeOs(diagnosis, dependencies)));
  });
  router.get('/v1/os/:name', async (context) => {
    const name = context.params['name'] ?? '';
    const diagnosis = await osRegistry.diagnose(name);
    if (diagnosis === undefined) {
      throw new AppError('OS_NOT_FOUND', `Directory for OS ${name} not found in search path`, {
        hint: `put it below ${dependencies.paths.osSearchPath.join(' or ')}`,
      });
    }
    context.body = await describeOs(diagnosis, dependencies);
  });
  router.get('/v1/openapi.json', (context) => {
    context.body = describeApi(dependencies.version);
  });
  router.get('/metrics', async (context) => {
    context.type = 'text/plain; version=0.0.4; charset=utf-8';
    context.body = await dependencies.metrics();
  });
}

async function describeOs(diagnosis: OsDiagnosis, { clusters }: ApiDependencies): Promise<OsInfo> {
  const settings = await clusters.loadOs(diagnosis.name);
  const { definition } = diagnosis;
  return {
    name: diagnosis.name,
    path: diagnosis.path,
    valid: definition !== null,
    problem: diagnosis.problem,
    apiVersions: [...(definition?.apiVersions ?? [])],
    variants: [...(definition?.variants ?? [])],
    parameters: [...(definition?.parameters ?? [])],
    hostScripts: Object.keys(definition?.hostScripts ?? {}),
    applianceScripts: Object.keys(definition?.applianceScripts ?? {}),
    trusted: settings.trusted,
    hidden: settings.hidden,
    blacklisted: settings.blacklisted,
    defaults: describeParameters(resolveParameters([osLayer(settings)])),
  };
}
