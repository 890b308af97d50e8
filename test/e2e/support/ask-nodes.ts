import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { systemClock } from '#shared/clock/clock.ts';
import { instanceInfo, type InstanceInfo } from '#shared/contract/instance.ts';
import { apiError } from '#shared/contract/api.ts';
import { jobEvent, jobRecord, type JobRecord } from '#shared/contract/job.ts';
import { silentLogger } from '#shared/log/log.ts';
import { openSealedRedis } from '#shared/cluster/cluster-store.ts';
import { ringOf } from '#shared/store/sealed-store.ts';
import { readClusterKey } from '#shared/store/store-choice.ts';
import { encodeKey } from '../../../noded/records/node-key.ts';
import { createNodeRegistry } from '../../../noded/records/node-registry.ts';
import { createInstanceRepository } from '../../../noded/records/instance-repository.ts';
import { planNewInstance } from '../../../noded/instances/record/plan-record.ts';
import { askSocket } from '../../lab/ask-socket.ts';
import type { Lab, ProgramName, ProgramResult } from '../../../scripts/demo/lab.ts';
import { createOpcode } from '../../noded/support/opcodes.ts';
import { createRecordProblems } from '#shared/store/readable-records.ts';

export async function succeed(lab: Lab, program: ProgramName, ...args: string[]): Promise<string> {
  const result = await lab.run(program, args, { timeoutMs: 60_000 });
  assert.equal(result.status, 0, `${program} ${args.join(' ')}: ${result.stderr}`);
  return result.stdout;
}

/** Returns the output of a command that must succeed. */
export async function must(result: Promise<ProgramResult>): Promise<string> {
  const { status, stdout, stderr } = await result;
  assert.equal(status, 0, stderr);
  return stdout;
}

export function assertRefused(
  result: ProgramResult,
  status: number,
  code: string,
  text: RegExp,
): void {
  assert.equal(result.status, status, result.stderr);
  assert.match(result.stderr, new RegExp(`^error\\[${code}\\]: `, 'm'));
  assert.match(result.stderr, text);
}

export async function ask<T>(lab: Lab, path: string, schema: z.ZodType<T>): Promise<T> {
  const { status, body } = await askSocket(lab.paths.nodedSocket, path);
  assert.equal(status, 200, body);
  return schema.parse(JSON.parse(body));
}

/** Submits a job without a command, which costs half a second, and returns it at its end. */
export async function submit(lab: Lab, opcode: object): Promise<JobRecord> {
  return endOf(lab, await post(lab, opcode));
}

/** Returns the result of a job, or why it was refused: of two at once, one may exist already. */
export const statusOf = async (lab: Lab, opcode: object): Promise<string> => {
  const answer = await post(lab, opcode);
  const refused = apiError.safeParse(answer);
  if (refused.success) return refused.data.code;
  const { status, error } = await endOf(lab, answer);
  return error === null ? status : error.code;
};

async function post(lab: Lab, opcode: object): Promise<unknown> {
  const asking = { method: 'POST', body: opcode };
  const { body } = await askSocket(lab.paths.nodedSocket, '/v1/jobs', asking);
  return JSON.parse(body);
}

async function endOf(lab: Lab, submitted: unknown): Promise<JobRecord> {
  const { id } = z.object({ id: z.number() }).parse(submitted);
  const events = await askSocket(lab.paths.nodedSocket, `/v1/jobs/${id}/events`);
  const end = jobEvent.parse(JSON.parse(events.body.trim().split('\n').at(-1) ?? ''));
  assert.ok(end.type === 'end', events.body);
  return end.job;
}

export const infoOf = (lab: Lab, name: string): Promise<InstanceInfo> =>
  ask(lab, `/v1/instances/${name}`, instanceInfo);
export const jobsOf = (lab: Lab): Promise<JobRecord[]> => ask(lab, '/v1/jobs', jobRecord.array());
export const listed = async (lab: Lab): Promise<unknown> =>
  (await ask(lab, '/v1/nodes', z.array(z.record(z.string(), z.unknown())))).map((node) => [
    node['name'],
    'silent' in node ? 'silent' : 'up',
    node['instances'],
  ]);

/** Adds an OS whose scripts run on the host. */
export async function addOs(lab: Lab, name: string, create: readonly string[]): Promise<void> {
  const folder = join(lab.paths.osSearchPath[0] ?? '', name);
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'ganeti_api_version'), '20\n');
  await writeFile(join(folder, 'parameters.list'), 'owner Who\napi-key A key\n');
  for (const file of ['create', 'import', 'export', 'rename', 'verify']) {
    const lines = file === 'create' ? create : ['exit 0'];
    await writeFile(join(folder, file), ['#!/bin/sh', 'set -eu', ...lines, ''].join('\n'));
    await chmod(join(folder, file), 0o755);
  }
}

export const addWords = (os: string, name: string, ...more: string[]): string[] => [
  'add', '-o', os, '-s', '16M', '--enable-safe-install', 'no', '--no-start', ...more, name,
]; // prettier-ignore

export async function untilRunning(lab: Lab): Promise<JobRecord> {
  for (;;) {
    const found = (await jobsOf(lab)).find(({ status }) => status === 'running');
    if (found !== undefined) return found;
    await sleep(50);
  }
}

/** Leaves the record of a former node with an instance. */
export async function leaveBehind(
  url: string,
  keyFile: string,
  node: string,
  name: string,
): Promise<void> {
  const key = await readClusterKey(keyFile);
  assert.ok(key);
  const { store } = await openSealedRedis(url, () => ringOf(key), silentLogger);
  await createNodeRegistry(store, createRecordProblems(silentLogger)).register(
    node,
    encodeKey(randomBytes(32)),
  );
  const planned = planNewInstance(createOpcode({ name }), {
    nodeName: node,
    newUuid: randomUUID,
    newMac: () => 'aa:00:00:00:00:01',
  });
  await createInstanceRepository(store, systemClock, createRecordProblems(silentLogger)).create(
    planned,
  );
  await store.close();
}
