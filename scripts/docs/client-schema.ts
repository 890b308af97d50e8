import openapiTS, { astToString } from 'openapi-typescript';
import { describeApi } from '../../noded/api/http/openapi.ts';

const HEADER = '// Generated from the OpenAPI document by `npm run docs`.\n\n';

/** Returns `client/schema.ts`: the types of the node's API. */
export async function generateClientSchema(): Promise<string> {
  // The types do not contain the version.
  const document = JSON.stringify(describeApi('0'));
  return HEADER + astToString(await openapiTS(document));
}
