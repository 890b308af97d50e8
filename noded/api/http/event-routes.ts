import { Readable } from 'node:stream';
import type {
  HelloEvent,
  InstancesEvent,
  JobsEvent,
  NodesEvent,
  ObjectsEvent,
} from '#shared/contract/cluster-event.ts';
import type { eventEndpoints } from '#shared/contract/endpoints.ts';
import { summarize } from '../../cluster/membership/overview.ts';
import type { ClusterChange } from '../../cluster/feed/change-follower.ts';
import type { ClusterFeed, OpenFeed } from '../../cluster/feed/cluster-feed.ts';
import { type Handlers, Reply } from './handlers.ts';

export interface EventRoutesDependencies {
  readonly feed: Pick<ClusterFeed, 'open'>;
  readonly describeSelf: () => Pick<HelloEvent, 'node' | 'version'>;
}

/** Returns the part of a change that a reader may see; null: nothing of it. */
export type ConfineChange = (change: ClusterChange) => Promise<ClusterChange | null>;

export function eventRoutes({
  feed,
  describeSelf,
}: EventRoutesDependencies): Handlers<typeof eventEndpoints> {
  return {
    'GET /v1/events': async ({ lastEventId, signal }) => {
      const open = await feed.open(lastEventId, signal);
      return streamEvents(open, describeSelf(), (change) => Promise.resolve(change));
    },
  };
}

/** Returns the answer with the events of a feed, as server-sent events. */
export function streamEvents(
  open: OpenFeed,
  self: Pick<HelloEvent, 'node' | 'version'>,
  confine: ConfineChange,
): Reply {
  return new Reply(200, Readable.from(encode(open, self, confine), { highWaterMark: 1 }), {
    headers: { 'Cache-Control': 'no-store', 'X-Accel-Buffering': 'no' },
  });
}

async function* encode(
  { isResumed, id, changes }: OpenFeed,
  self: Pick<HelloEvent, 'node' | 'version'>,
  confine: ConfineChange,
): AsyncGenerator<string> {
  yield formatEvent(id, 'hello', { ...self, isResumed } satisfies HelloEvent);
  for await (const next of changes) {
    if (next === null) {
      yield ': alive\n\n';
      continue;
    }
    const change = await confine(next.change);
    if (change !== null) yield formatEvent(next.id, change.event, dataOf(change));
  }
}

function dataOf(
  change: ClusterChange,
): InstancesEvent | JobsEvent | NodesEvent | ObjectsEvent | object {
  if (change.event === 'reset') return {};
  if (change.event !== 'instances') {
    const { event, ...data } = change;
    void event;
    return data;
  }
  return {
    changed: change.changed.map(({ now }) => summarize(now)),
    removed: change.removed.map(({ uuid }) => uuid),
  };
}

/** JSON has no line breaks, so the data is one line. */
function formatEvent(id: string, event: string, data: object): string {
  return `id: ${id}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}
