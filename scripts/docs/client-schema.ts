import openapiTS, { astToString } from 'openapi-typescript';
import { listEndpoints } from '#shared/contract/endpoints.ts';
import { describeApi } from '../../noded/api/http/openapi.ts';

const HEADER = '// Generated from the OpenAPI document by `npm run docs`.\n\n';
/** Nodes alone call these endpoints. */
const BETWEEN_NODES = new Set(
  listEndpoints()
    .filter(({ summary }) => summary.startsWith('Between nodes: '))
    .map(({ path }) => path),
);

/** Returns `client/schema.ts`: the types of the node's API for clients. */
export async function generateClientSchema(): Promise<string> {
  // The types do not contain the version.
  const { paths, ...document } = describeApi('0');
  const offered = Object.entries(paths as object).filter(([path]) => !BETWEEN_NODES.has(path));
  const text = JSON.stringify({ ...document, paths: Object.fromEntries(offered) });
  return HEADER + astToString(await openapiTS(text));
}
