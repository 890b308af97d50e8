import { computed, effect, signal } from '@preact/signals';
import type { ApiFailure, Schemas } from '../../client/api-client.ts';
import {
  type ChangeEvent,
  followChanges,
  type StreamPosition,
} from '../../client/change-stream.ts';
import { readLines } from '../../client/lines.ts';
import { KeyedList } from './keyed-list.ts';
import { backgroundApi, openStream, session } from './session.ts';
import { isShown } from './shown.ts';

const RETRY_MS = 3000;

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
/** When the node stopped answering; null while it answers. */
export const lostAtMs = signal<number | null>(null);
/** Increases when the node answers again: what was read before may be old. */
export const returns = signal(0);
/** Dispatches `wake` when the page comes back into view or to the network. */
const wakes = new EventTarget();

/** Follows the cluster while a user is logged in and the page is in view. */
export function followCluster(): void {
  const login = computed(() => session.value?.csrf);
  let reader: string | undefined;
  let position = { lastEventId: '' };
  const wake = (): boolean => wakes.dispatchEvent(new Event('wake'));
  for (const name of ['online', 'pageshow']) addEventListener(name, wake);
  for (const name of ['resume', 'visibilitychange']) document.addEventListener(name, wake);
  effect(() => {
    if (login.value === undefined || !isShown.value) return;
    const user = session.peek()?.user;
    if (user !== reader) {
      clearLists();
      position = { lastEventId: '' };
    }
    reader = user;
    const stop = new AbortController();
    void follow(position, stop.signal);
    return () => stop.abort();
  });
}

/** Another user may see other instances. */
function clearLists(): void {
  instances.clear();
  jobs.clear();
  nodes.value = [];
}

async function follow(position: StreamPosition, stop: AbortSignal): Promise<void> {
  let reading: AbortController | undefined;
  let isComplete = position.lastEventId !== '';
  const readLists = async (): Promise<void> => {
    isComplete = false;
    reading?.abort();
    reading = new AbortController();
    const signal = AbortSignal.any([stop, reading.signal]);
    await Promise.all([readInstances, readJobs].map((read) => repeat(read, signal)));
    if (!signal.aborted) isComplete = true;
  };
  stop.addEventListener('abort', () => {
    // The next stream reads the lists again.
    if (!isComplete) position.lastEventId = '';
  });
  await followChanges({
    open: (headers, signal) => openStream('/v1/events', signal, headers),
    onEvent: (change) => {
      if (isLoss(change)) void readLists();
      applyChange(change);
    },
    onState: noteState,
    position,
    wakes,
    signal: stop,
  }).catch(() => undefined);
}

function noteState(state: 'open' | ApiFailure): void {
  connection.value = state;
  if (state !== 'open') {
    // 401: the session has ended, and the login covers the page.
    if (state.status !== 401) lostAtMs.value ??= Date.now();
  } else if (lostAtMs.value !== null) {
    lostAtMs.value = null;
    returns.value += 1;
  }
}

/** Returns whether changes before this one are missing. */
function isLoss({ event, data }: ChangeEvent): boolean {
  return event === 'reset' || (event === 'hello' && !data.isResumed);
}

function applyChange(change: ChangeEvent): void {
  const { event, data } = change;
  if (event === 'instances') {
    for (const instance of data.changed) instances.set(instance.uuid, instance);
    for (const uuid of data.removed) instances.delete(uuid);
  }
  if (event === 'jobs') {
    // Checks of the forms are not the user's jobs.
    for (const job of data.changed) if (job.isDryRun !== true) jobs.set(job.id, job);
    for (const id of data.removed) jobs.delete(id);
  }
  if (event === 'nodes') nodes.value = data.nodes;
  if (event === 'objects' || isLoss(change)) objectsVersion.value += 1;
}

/** Shows the first rows before the last ones have arrived. */
async function readInstances(signal: AbortSignal): Promise<void> {
  const { response } = await backgroundApi.GET('/v1/instance-summaries', {
    parseAs: 'stream',
    signal,
  });
  if (response.body === null) throw new Error('the list is empty');
  const { add, finish } = instances.startReading();
  for await (const instance of readLines<Instance>(response.body)) add(instance.uuid, instance);
  finish();
}

async function readJobs(signal: AbortSignal): Promise<void> {
  const { add, finish } = jobs.startReading();
  const { data = [] } = await backgroundApi.GET('/v1/jobs', { signal });
  for (const job of data) if (job.input['isDryRun'] !== true) add(job.id, job);
  finish();
}

/** Repeats until it succeeds, since the node may be restarting. */
async function repeat(
  read: (signal: AbortSignal) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    try {
      await read(signal);
      return;
    } catch {
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }
}
