import assert from 'node:assert/strict';
import { test } from 'node:test';
import { z } from 'zod';
import { run } from '#shared/process/run.ts';
import { readRapiResources } from '../../../../scripts/docs/pages/remote-api.ts';
import { foreignClients, pythonEnvironment } from '../../../metad/support/foreign-clients.ts';

/** Prints each method and resource of Ganeti's remote API. */
const LIST = `
import json
from ganeti.rapi import connector

def compile_path(*parts):
  return "".join(":" + x.content if isinstance(x, connector.UriPattern) else x for x in parts)

handlers = connector.GetHandlers("name", "name", "name", "name", "id", "disk", "uuid", "resource",
                                 translate=compile_path)
print(json.dumps([
  method + " " + path
  for path, handler in handlers.items()
  for method in ("GET", "PUT", "POST", "DELETE")
  if hasattr(handler, method) or getattr(handler, method + "_OPCODE", None) is not None
]))
`;

test('every resource of Ganeti 3.0 is served, or refused with a reason', async () => {
  const tree = await foreignClients();
  const { stdout } = await run('/usr/bin/python3', ['-c', LIST], {
    env: pythonEnvironment({ clients: tree, tree }),
  });
  const theirs = z.array(z.string()).parse(JSON.parse(stdout));
  const ours = new Map(readRapiResources().map((one) => [`${one.method} ${one.path}`, one]));
  assert.equal(theirs.length, 82);
  assert.deepEqual(
    theirs.filter((pair) => !ours.has(pair)),
    [],
  );
  const refused = [...ours].filter(([, { refusal }]) => refusal !== undefined);
  assert.equal(refused.length, 28);
  assert.deepEqual(
    refused.map(([pair]) => pair).filter((pair) => !theirs.includes(pair)),
    [],
  );
});
