import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { z } from 'zod';
import { run } from '#shared/process/run.ts';
import { foreignClients, pythonEnvironment } from '../../../metad/support/foreign-clients.ts';
import { CLIENT_READS, CLIENT_REQUESTS } from './client-fields.ts';
import { createRapiLab, type RapiLab } from './rapi-lab.ts';

/** Ganeti's own client calls each of its public methods on a real node, and others are replayed. */
const PASSWORD = 'word';

const outcome = z.union([
  z.strictObject({ answer: z.unknown() }),
  z.strictObject({ job: z.string(), result: z.unknown() }),
  z.strictObject({ code: z.number().nullable(), reason: z.string() }),
]);
const outcomes = z.object({
  methods: z.array(z.string()),
  outcomes: z.record(z.string(), outcome),
  defaults: z.record(z.string(), outcome),
});

let rapi: RapiLab;
let found: z.infer<typeof outcomes>;

before(async () => {
  rapi = await createRapiLab('gnt-methods', PASSWORD, ['writer write']);
  await rapi.addOs('rapi-os', ['exit 0']);
  const tree = await foreignClients();
  const words = [join(import.meta.dirname, 'every_method.py'), rapi.port, rapi.certificateFile];
  const { stdout } = await run('/usr/bin/python3', words.map(String), {
    env: pythonEnvironment({ clients: tree, tree }),
    input: PASSWORD,
  });
  found = outcomes.parse(JSON.parse(stdout));
});

after(async () => {
  await rapi.lab.stopNode();
  const leftovers = await rapi.lab.findLeftovers();
  await rapi.lab.dispose();
  assert.deepEqual(leftovers, []);
});

const DONE = /"job":"success"/;
const GROUPS = /"code":501.* has one node group/;
const DISKS = /"code":501.*: a start of the instance activates its disks/;
const STORAGE = /"code":501.*: this cluster has no storage units/;
const FILTERS = /"code":501.*: this cluster has no job filters/;
const NODE_TAGS = /"code":501.*: nodes have no tags/;

/** The outcome of each method as JSON: its answer, its job, or code and reason of a refusal. */
const EXPECTED: Readonly<Record<string, RegExp>> = {
  GetVersion: /^\{"answer":2\}$/,
  GetFeatures: /"node-evac-res1"/,
  GetInfo: /"master":"node1\.example\.com"/,
  GetOperatingSystems: /^\{"answer":\["rapi-os"\]\}$/,
  ModifyCluster: /"code":501.*: cluster settings are changed on a node/,
  RedistributeConfig: /"code":501.*nothing to distribute/,
  AddClusterTags: DONE,
  DeleteClusterTags: DONE,
  GetClusterTags: /^\{"answer":\["blue"\]\}$/,
  CreateNetwork: DONE,
  ModifyNetwork: DONE,
  GetNetworks: /^\{"answer":\["lan"\]\}$/,
  GetNetwork: /"network":"10\.9\.0\.0\/24".*"external_reservations":"[^"]*10\.9\.0\.7/,
  AddNetworkTags: DONE,
  DeleteNetworkTags: DONE,
  GetNetworkTags: /^\{"answer":\["b"\]\}$/,
  ConnectNetwork: /"job":"error".*no bridge named.*"environment_error"/,
  DisconnectNetwork: /"job":"error".*is connected on no node/,
  DeleteNetwork: DONE,
  InstanceAllocation: /"name":"web1\.example\.com"/,
  InstancesMultiAlloc: /"code":501.*: create each instance by its own job/,
  CreateInstance: DONE,
  GetInstances: /^\{"answer":\["web1\.example\.com"\]\}$/,
  GetInstance: /"beparams":\{"memory":256.*"status":"ADMIN_down"/,
  GetInstanceInfo: /"job":"success".*"run_state":"down"/,
  ModifyInstance: DONE,
  AddInstanceTags: DONE,
  DeleteInstanceTags: DONE,
  GetInstanceTags: /^\{"answer":\["blue"\]\}$/,
  GrowInstanceDisk: DONE,
  ReinstallInstance: DONE,
  StartupInstance: DONE,
  ShutdownInstance: DONE,
  RebootInstance: /"job":"error".*"wrong_state"/,
  GetInstanceConsole: /"code":503.*it is not running/,
  MigrateInstance: /"job":"error".*"OpPrereqError"/,
  FailoverInstance: /"job":"error".*"OpPrereqError"/,
  PrepareExport: /"code":501.*: an instance is exported on its node only/,
  ExportInstance: DONE,
  ActivateInstanceDisks: DISKS,
  DeactivateInstanceDisks: DISKS,
  RecreateInstanceDisks: /"code":501.*: disks are created with the instance/,
  ReplaceInstanceDisks: /"code":501.*: disks have no replica/,
  RenameInstance: DONE,
  DeleteInstance: DONE,
  GetJobs: /^\{"answer":\[1,2,/,
  GetJobStatus: /"id":1,.*"status":"success"/,
  WaitForJobCompletion: /^\{"answer":true\}$/,
  WaitForJobChange: /"job_info":\["success"\]/,
  CancelJob: /^\{"answer":\[false,"job 1 has already ended/,
  GetNodes: /^\{"answer":\["node1\.example\.com"\]\}$/,
  GetNode: /"name":"node1\.example\.com"/,
  ModifyNode: /"job":"success".*"drained":true/,
  SetNodeRole: /"job":"success".*"drained":false/,
  GetNodeRole: /^\{"answer":"master"\}$/,
  EvacuateNode: /"code":501.*: evacuate by one job for each instance/,
  MigrateNode: /"code":501.*: migrate by one job for each instance/,
  PowercycleNode: /"code":501.*: this API does not control the power of nodes/,
  GetNodeStorageUnits: STORAGE,
  ModifyNodeStorageUnits: STORAGE,
  RepairNodeStorageUnits: STORAGE,
  GetNodeTags: /^\{"answer":\[\]\}$/,
  AddNodeTags: NODE_TAGS,
  DeleteNodeTags: NODE_TAGS,
  GetGroups: /^\{"answer":\["default"\]\}$/,
  GetGroup: /"node_list":\["node1\.example\.com"\]/,
  GetGroupTags: /^\{"answer":\[\]\}$/,
  CreateGroup: GROUPS,
  ModifyGroup: GROUPS,
  DeleteGroup: GROUPS,
  RenameGroup: GROUPS,
  AssignGroupNodes: GROUPS,
  AddGroupTags: GROUPS,
  DeleteGroupTags: GROUPS,
  Query: /"data":\[\[\[0,"node1\.example\.com"\]\]\]/,
  QueryFields: /"title":"Group"/,
  GetFilters: FILTERS,
  GetFilter: FILTERS,
  AddFilter: FILTERS,
  ReplaceFilter: FILTERS,
  DeleteFilter: FILTERS,
};

test("each method of Ganeti's client has an answer or a refusal with the reason", () => {
  assert.deepEqual(found.methods.toSorted(), Object.keys(EXPECTED).toSorted());
  assert.deepEqual(Object.keys(found.outcomes).toSorted(), found.methods.toSorted());
  for (const [method, pattern] of Object.entries(EXPECTED))
    assert.match(JSON.stringify(found.outcomes[method]), pattern, method);
});

test("each request accepts all of Ganeti's parameters at their defaults", () => {
  assert.ok(Object.keys(found.defaults).length > 12);
  for (const [opcode, result] of Object.entries(found.defaults))
    assert.ok('answer' in result, `${opcode}: ${JSON.stringify(result)}`);
});

const NAME = 'fields.example.com';

test('answers have the fields that other clients read, with their types', async () => {
  const created = await ask('/2/instances', 'POST', {
    ...{ __version__: 1, mode: 'create', name: NAME, disk_template: 'file', os: 'rapi-os' },
    ...{ disks: [{ size: 16 }], nics: [{ mode: 'user' }], start: false },
    hvparams: { boot_order: 'cdrom,disk' },
  });
  const job = z.number().parse(created.body);
  assert.equal(await endOf(job), 'success');
  for (const { client, path, answer } of CLIENT_READS) {
    const { body } = await ask(withNames(path).replace('JOB', String(job)));
    const parsed = answer.safeParse(body);
    assert.ok(parsed.success, `${client}: ${path}: ${parsed.error?.message}`);
  }
});

test('requests of other clients become jobs', async () => {
  for (const { client, method, path, body } of CLIENT_REQUESTS) {
    const answer = await ask(`${withNames(path)}?dry-run=1`, method, body);
    assert.equal(typeof answer.body, 'number', `${client}: ${path}: ${JSON.stringify(answer)}`);
  }
});

test('a missing instance has the text by which clients recognize it', async () => {
  const { status, body } = await ask('/2/instances/missing.example.com');
  assert.equal(status, 404);
  const { explain } = z.object({ explain: z.string() }).parse(body);
  assert.match(explain, /^Nothing matches the given URI: .*missing\.example\.com/);
});

function ask(path: string, method = 'GET', body?: unknown): ReturnType<RapiLab['ask']> {
  const sent = body === undefined ? undefined : JSON.stringify(body);
  return rapi.ask(path, { user: 'writer', method, body: sent });
}

function withNames(path: string): string {
  return path.replace('NAME', NAME).replace('NODE', 'node1.example.com');
}

/** @returns the last status of a job */
async function endOf(job: number): Promise<string> {
  const waited = z.object({ job_info: z.tuple([z.string()]) }).nullable();
  for (let info: readonly string[] | null = null; ;) {
    const asked = { fields: ['status'], previous_job_info: info, previous_log_serial: null };
    const change = waited.parse((await ask(`/2/jobs/${job}/wait`, 'GET', asked)).body);
    info = change?.job_info ?? info;
    const status = info?.[0] ?? '';
    if (['success', 'error', 'canceled'].includes(status)) return status;
  }
}
