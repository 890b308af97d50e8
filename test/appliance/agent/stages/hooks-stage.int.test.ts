import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { InstallPlan } from '#shared/contract/plan.ts';
import { createHostClient } from '../../../../appliance/agent/channel/host-client.ts';
import { type HookBook, openHooks } from '../../../../appliance/agent/hooks/main.ts';
import { ScriptWorld } from '../../../../appliance/agent/scripts/script-world.ts';
import { createHooksStage, hasHooks } from '../../../../appliance/agent/stages/hooks.ts';
import type { StageReporter } from '../../../../appliance/agent/report/stage.ts';
import { hookDocument } from '../hooks/support/temp-root.ts';
import { listenOnLoopback } from '../../../lab/listen-on-loopback.ts';

const folder = mkdtempSync(join(tmpdir(), 'gnt-own-hooks-'));
const nowhere = join(folder, 'nowhere');
const served = [hookDocument('stages: {install.post: [{name: own}]}', { name: 'a.yaml' })];
const server = createServer((request, response) => {
  const isProven = request.headers['x-gnt-agent-proof'] === 'proof of install/hooks.json';
  const isHooks = request.url === '/ganeti/latest/install/hooks.json';
  response.statusCode = isHooks && isProven ? 200 : 404;
  // Ends the client's wait for more.
  response.setHeader('connection', 'close');
  response.end(JSON.stringify(served));
});
let port: number;
before(async () => {
  port = await listenOnLoopback(server);
  writeFileSync(join(folder, 'z.yaml'), 'stages: {install.pre: [{}], boot: [{}]}');
  writeFileSync(join(folder, 'README'), 'no hooks');
});
after(() => {
  server.closeAllConnections();
  server.close();
  rmSync(folder, { recursive: true });
});

const plan: InstallPlan = {
  version: 1,
  installId: '11111111-1111-1111-1111-111111111111',
  instance: 'test.example.com',
  disks: [],
  image: null,
  scripts: null,
  personalization: null,
};
const withHooks = (hasDocuments: boolean): InstallPlan => ({
  ...plan,
  hooks: { points: ['install.pre', 'install.post'], hasDocuments },
});
const lines: string[] = [];
const reporter: StageReporter = { log: (line) => lines.push(line), progress: () => undefined };

function open(of: InstallPlan, ownFolder: string) {
  const books: HookBook[] = [];
  const stages = createHooksStage({
    plan: of,
    host: createHostClient({ host: '127.0.0.1', port }),
    parameters: async () => ({}),
    world: new ScriptWorld(),
    signPath: (path) => `proof of ${path}`,
    load: () => ({ openHooks }),
    ownFolder,
    onOpened: (book) => books.push(book),
  });
  return { stages, books };
}

test('an installation without hook documents has no hooks stage', () => {
  assert.deepEqual(open(plan, folder).stages, []);
  assert.deepEqual(open(withHooks(false), nowhere).stages, []);
});

test("the appliance's hooks run before the host's hooks, and stages outside of installations are logged", async () => {
  const { stages, books } = open(withHooks(true), folder);
  assert.equal(await stages[0]?.run(reporter), '2 step(s) from appliance/z.yaml, instance/a.yaml');
  assert.deepEqual(lines, ['appliance/z.yaml: ignored, not for installations: stage boot']);
  const [book] = books;
  assert.ok(book && hasHooks(book, 'install.pre') && hasHooks(book, 'install.post'));
  assert.equal(hasHooks(book, 'image'), false);
});

test("an appliance's hooks run when the host has none", async () => {
  const { stages } = open(withHooks(false), folder);
  assert.equal(await stages[0]?.run(reporter), '1 step(s) from appliance/z.yaml');
});
