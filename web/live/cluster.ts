import { effect, signal } from '@preact/signals';
import type { ApiFailure, Schemas } from '../../client/api-client.ts';
import { type ChangeEvent, followChanges } from '../../client/change-stream.ts';
import { readLines } from '../../client/lines.ts';
import { KeyedList } from './keyed-list.ts';
import { backgroundApi, openStream, session } from './session.ts';

export type Instance = Schemas['InstanceSummary'];
export type Job = Schemas['JobsEvent']['changed'][number];
export type NodeState = Schemas['NodesEvent']['nodes'][number];

/** The instances of the cluster, kept current by the stream of changes. */
export const instances = new KeyedList<string, Instance>();
export const jobs = new KeyedList<number, Job>();
export const nodes = signal<readonly NodeState[]>([]);
/** Increases when a list outside this file may have changed: networks, profiles and others. */
export const objectsVersion = signal(0);
/** The state of the stream of changes. */
export const connection = signal<'connecting' | 'open' | ApiFailure>('connecting');

/** Follows the cluster whenever a user is logged in. */
export function followCluster(): void {
  let current: AbortController | undefined;
  let user: string | undefined;
  effect(() => {
    const { user: now } = session.value ?? {};
    if (now === user) return;
    user = now;
    current?.abort();
    if (now === undefined) return;
    current = new AbortController();
    void follow(current.signal);
  });
}

async function follow(stop: AbortSignal): Promise<void> {
  await followChanges({
    open: (headers, signal) => openStream('/v1/events', signal, headers),
    onEvent: applyChange,
    onState: (state) => {
      connection.value = state;
    },
    signal: stop,
  }).catch(() => undefined);
}

function applyChange({ event, data }: ChangeEvent): void {
  if (event === 'hello' && !data.isResumed) void loadLists();
  if (event === 'reset') void loadLists();
  if (event === 'instances') {
    for (const instance of data.changed) instances.set(instance.uuid, instance);
    for (const uuid of data.removed) instances.delete(uuid);
  }
  if (event === 'jobs') {
    for (const job of data.changed) jobs.set(job.id, job);
    for (const id of data.removed) jobs.delete(id);
  }
  if (event === 'nodes') nodes.value = data.nodes;
  if (event === 'objects' || event === 'reset') objectsVersion.value += 1;
}

async function loadLists(): Promise<void> {
  await Promise.allSettled([loadInstances(), loadJobs()]);
}

/** Shows the first rows before the last ones have arrived. */
async function loadInstances(): Promise<void> {
  const { response } = await backgroundApi.GET('/v1/instance-summaries', { parseAs: 'stream' });
  const found = new Set<string>();
  if (response.body === null) return;
  for await (const instance of readLines<Instance>(response.body)) {
    found.add(instance.uuid);
    instances.set(instance.uuid, instance);
  }
  instances.keepOnly(found);
}

async function loadJobs(): Promise<void> {
  const { data = [] } = await backgroundApi.GET('/v1/jobs');
  jobs.replace(data.map((job) => [job.id, job]));
}
