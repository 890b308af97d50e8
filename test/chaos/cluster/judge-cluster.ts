import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { instanceRecord, type InstanceRecord } from '#shared/contract/instance.ts';
import { jobRecord, type JobRecord } from '#shared/contract/job.ts';
import { metadStatus } from '#shared/contract/metad-control.ts';
import type { Store } from '#shared/store/store.ts';
import { INSTANCES } from '../../../noded/records/instance-repository.ts';
import type { Lab } from '../../../scripts/demo/lab.ts';
import { askSocket } from '../../lab/ask-socket.ts';
import { findWrongClaims, type Row } from '../find-violations.ts';
import type { Asked } from './cluster-jobs.ts';
import { isOnItsWay, judgeMoving } from './judge-moving.ts';
import type { Place } from './strike.ts';

const CLAIMS = ['claim-name', 'claim-ip', 'claim-mac', 'claim-network-ip'];

/**
 * Host scripts append the names of created instances to this file. The path is the same on each
 * host, because trust depends on the definition's content; each host has its own `/run`.
 */
export const SCRIPT_LOG = '/run/scripts-ran';

export async function readJobs(lab: Lab): Promise<readonly JobRecord[]> {
  const { status, body } = await askSocket(lab.paths.nodedSocket, '/v1/jobs');
  if (status !== 200) throw new Error(`a node does not tell its jobs: ${body}`);
  return jobRecord.array().parse(JSON.parse(body));
}

export async function readInstances(store: Store): Promise<readonly InstanceRecord[]> {
  return (await store.list(INSTANCES)).map(({ value }) => instanceRecord.parse(value));
}

/** Checks the invariants of an undisturbed cluster after all jobs have ended. */
export async function judgeCluster(
  places: readonly Place[],
  store: Store,
  asked: readonly Asked[],
): Promise<readonly string[]> {
  const instances = await readInstances(store);
  const rows: Row[] = [];
  for (const collection of CLAIMS)
    for (const { id, value } of await store.list(collection))
      rows.push({ collection, id, value: JSON.stringify(value) });
  const jobs = await Promise.all(places.map(({ lab }) => readJobs(lab)));
  const ran = await countScripts(places);
  return [
    ...findWrongClaims(rows, instances),
    ...findTwice(instances),
    ...findIgnored(asked),
    ...judgeOutcomes(asked, jobs),
    ...judgeCreations(asked, jobs[0] ?? [], instances, ran),
    ...(await judgeNodes(places, instances)),
    ...(await judgeWays(places, instances, asked, jobs[0] ?? [])),
  ];
}

/** Whatever fails, a client must get an answer or lose the connection. */
function findIgnored(asked: readonly Asked[]): readonly string[] {
  return asked.flatMap(({ opcode, answer, tookMs }) =>
    answer.kind === 'ignored' ? [`${opcode.opcode} ${opcode.name}: no answer in ${tookMs} ms`] : [],
  );
}

/** Finds duplicate names and addresses in the records, independent of claims. */
function findTwice(instances: readonly InstanceRecord[]): readonly string[] {
  const owners = new Map<string, string>();
  const problems: string[] = [];
  for (const { name, channel, nics } of instances) {
    const own = [
      ...[name, `channel ${channel.ip}`, `mac ${channel.mac}`],
      ...nics.map(({ mac }) => `mac ${mac}`),
      ...nics.flatMap(({ networkName, ip }) => (networkName !== undefined && ip != null ? [`${networkName} ${ip}`] : [])),
    ]; // prettier-ignore
    for (const one of own) {
      const other = owners.get(one);
      if (other !== undefined) problems.push(`${one} is of ${other} and of ${name}`);
      owners.set(one, name);
    }
  }
  return problems;
}

/** Checks that each accepted job has one end, and that all nodes report the same. */
function judgeOutcomes(
  asked: readonly Asked[],
  jobs: readonly (readonly JobRecord[])[],
): readonly string[] {
  const ids = asked.flatMap(({ answer }) => (answer.kind === 'accepted' ? [answer.id] : []));
  const problems = ids.filter((id, index) => ids.indexOf(id) !== index).map((id) => `job ${id} was told twice`); // prettier-ignore
  for (const id of ids) {
    const told = jobs.map((all) => all.filter((job) => job.id === id));
    const [[first] = []] = told;
    if (told.some((found) => found.length !== 1))
      problems.push(`job ${id} is known ${told.map(({ length }) => length).join(', ')} times`);
    const ends = new Set(told.flat().map(({ status, endedAtMs }) => `${status} ${endedAtMs}`));
    if (ends.size > 1) problems.push(`job ${id} ended as ${[...ends].join(' and ')}`);
    if (first?.endedAtMs === null) problems.push(`job ${id}, ${first.summary}, is ${first.status}`);
    if (first?.error?.code === 'INTERNAL')
      problems.push(`job ${id}, ${first.summary}: ${first.error.message}`);
  }
  return problems;
}

/** Checks new instances, except instances touched by a later job. */
function judgeCreations(
  asked: readonly Asked[],
  jobs: readonly JobRecord[],
  instances: readonly InstanceRecord[],
  ran: ReadonlyMap<string, number>,
): readonly string[] {
  const touched = new Set(
    asked.flatMap(({ opcode }) => (opcode.opcode === 'INSTANCE_CREATE' ? [] : [opcode.name])),
  );
  return asked.flatMap(({ opcode, answer }) => {
    const { name } = opcode;
    if (opcode.opcode !== 'INSTANCE_CREATE' || touched.has(name)) return [];
    const state = instances.find((instance) => instance.name === name)?.installState ?? 'nowhere';
    const times = ran.get(name) ?? 0;
    const told = `${name} is ${state}, its script ran ${times} times`;
    const job = jobs.find(({ id }) => answer.kind === 'accepted' && id === answer.id);
    const problems: string[] = [];
    if (answer.kind === 'refused' && (state !== 'nowhere' || times > 0))
      problems.push(`${told}, and it was refused with ${answer.code}`);
    if (job?.status === 'success' && (state !== 'installed' || times !== 1))
      problems.push(`${told}, and its job succeeded`);
    if (times > 1 || state === 'installing') problems.push(told);
    return problems;
  });
}

/** Checks that disks, QEMU processes and views are only on the node of the record. */
async function judgeNodes(
  places: readonly Place[],
  instances: readonly InstanceRecord[],
): Promise<readonly string[]> {
  const problems: string[] = [];
  for (const { name, lab } of places) {
    const { paths } = lab;
    const { body } = await askSocket(paths.metadControlSocket, '/v1/status');
    const here = {
      disks: (await readdir(paths.disksDir)).filter(
        (entry) => !entry.startsWith('.') && !isOnItsWay(entry),
      ),
      machine: await readdir(paths.vmDir).catch((): string[] => []),
      view: metadStatus.parse(JSON.parse(body)).instances.map(({ uuid }) => uuid),
    };
    for (const [what, uuids] of Object.entries(here))
      for (const uuid of uuids) {
        const owner = instances.find((instance) => instance.uuid === uuid);
        if (owner?.primaryNode !== name)
          problems.push(`${what} of ${owner?.name ?? uuid} on ${name}, and it is ${owner ? `on ${owner.primaryNode}` : 'nobody'}`); // prettier-ignore
      }
    for (const { uuid, name: whose, primaryNode, installState, disks } of instances)
      if (
        primaryNode === name &&
        installState === 'installed' &&
        disks.length > 0 &&
        !here.disks.includes(uuid)
      )
        // prettier-ignore
        problems.push(`the disks of ${whose} are not on ${name}`);
  }
  return problems;
}

async function judgeWays(
  places: readonly Place[],
  instances: readonly InstanceRecord[],
  asked: readonly Asked[],
  jobs: readonly JobRecord[],
): Promise<readonly string[]> {
  const disks = await Promise.all(
    places.map(async ({ name, lab }) => ({
      node: name,
      entries: await readdir(lab.paths.disksDir),
    })),
  );
  const moves = asked.flatMap(({ opcode, answer }) => {
    if (opcode.opcode !== 'INSTANCE_MOVE' && opcode.opcode !== 'INSTANCE_MIGRATE') return [];
    if (opcode.node === undefined) return [];
    const job = jobs.find(({ id }) => answer.kind === 'accepted' && id === answer.id);
    return [{ to: opcode.node, isDone: job?.status === 'success' }];
  });
  const removals = asked.filter(({ opcode }) => opcode.opcode === 'INSTANCE_REMOVE').length;
  return judgeMoving(disks, instances, moves, removals);
}

async function countScripts(places: readonly Place[]): Promise<ReadonlyMap<string, number>> {
  const counts = new Map<string, number>();
  for (const { host } of places) {
    const text = await readFile(join(host.mounts, SCRIPT_LOG), 'utf8').catch(() => '');
    for (const name of z.array(z.string()).parse(text.split('\n').filter(Boolean)))
      counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return counts;
}
