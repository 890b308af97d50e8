import { Readable } from 'node:stream';
import type { AllEndpoints, EndpointKey } from '#shared/contract/endpoints.ts';
import type { JobRecord } from '#shared/contract/job.ts';
import { isWithin } from '#shared/contract/submitter.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { isErrorCode } from '#shared/errors/codes.ts';
import type { ClusterFeed } from '../../cluster/feed/cluster-feed.ts';
import type { ClusterChange } from '../../cluster/feed/change-follower.ts';
import type { Overview } from '../../cluster/membership/overview.ts';
import type { JobService } from '../../jobs/job-service.ts';
import type { ClusterRepository } from '../../records/cluster-repository.ts';
import type { InstanceIndex } from '../../records/instance-index.ts';
import { type EventRoutesDependencies, streamEvents } from '../http/event-routes.ts';
import { type ApiHandlers, type RemoteUser, Reply } from '../http/handlers.ts';
import { answerInstances, encodeSummaries } from '../http/instance-routes.ts';
import type { ObjectRoutesDependencies } from '../http/object-routes.ts';
import { parseJobId } from '../http/job-routes.ts';
import { listBootEnvs, listProfiles } from '../rapi/rapi-boot-routes.ts';
import { listNetworks } from '../rapi/rapi-network-routes.ts';
import { createSubmit } from '../rapi/rapi-route.ts';
import { createVisible, type Visible } from '../rapi/visible.ts';

/** Endpoints whose answer depends on the user. */
type OwnKey = {
  [Key in EndpointKey]: AllEndpoints[Key] extends { access: 'own' } ? Key : never;
}[EndpointKey];

export interface UserHandlersDependencies extends Pick<EventRoutesDependencies, 'describeSelf'> {
  readonly overview: Pick<Overview, 'instanceSlices' | 'instance' | 'orphans' | 'summaries'>;
  readonly index: Pick<InstanceIndex, 'list'>;
  readonly clusters: Pick<ClusterRepository, 'load'> & ObjectRoutesDependencies['clusters'];
  readonly jobs: JobService;
  readonly feed: Pick<ClusterFeed, 'open'>;
}

/**
 * Returns the handlers for sessions: those of the API, with answers that contain only the records
 * that a user may see. Without a user they are those of root.
 */
export function createUserHandlers(
  all: ApiHandlers,
  dependencies: UserHandlersDependencies,
): ApiHandlers {
  const { overview, jobs, clusters, feed, describeSelf } = dependencies;
  const visible = createVisible(dependencies);
  const submit = createSubmit(jobs, clusters);
  /** Throws JOB_NOT_FOUND for a job that the user may not see. */
  const seeJob = async (user: RemoteUser | undefined, id: string): Promise<void> => {
    if (user !== undefined) await visible.job(user, parseJobId(id));
  };
  const own: Pick<ApiHandlers, OwnKey> = {
    'GET /v1/instances': (asked) =>
      asked.user === undefined
        ? all['GET /v1/instances'](asked)
        : answerInstances(visible.instanceSlices(asked.user), asked.query.lines === '1'),
    'GET /v1/instance-summaries': async (asked) => {
      const { user, query } = asked;
      if (user === undefined) return all['GET /v1/instance-summaries'](asked);
      const seen = Iterator.from(await overview.summaries()).filter((each) =>
        isWithin(user.scope, each),
      );
      return Readable.from(encodeSummaries(seen, query.fields));
    },
    'GET /v1/profiles': async (asked) =>
      asked.user === undefined
        ? all['GET /v1/profiles'](asked)
        : [...(await listProfiles(dependencies, asked.user))],
    'GET /v1/networks': async (asked) =>
      asked.user === undefined
        ? all['GET /v1/networks'](asked)
        : [...(await listNetworks(dependencies, asked.user))],
    'GET /v1/bootenvs': async (asked) => {
      if (asked.user === undefined) return all['GET /v1/bootenvs'](asked);
      const seen = await listBootEnvs(dependencies, asked.user);
      return seen.map((each) => ({ ...each, document: each.document ?? {} }));
    },
    'POST /v1/jobs': async (asked) => {
      const { user, query, body, signal } = asked;
      if (user === undefined) return all['POST /v1/jobs'](asked);
      const isDryRun = query['dry-run'] !== undefined;
      const id = await submit(body, user, { isDryRun });
      if (query['dry-run'] !== '1') return new Reply(202, { id });
      return judgeDryRun(await endOf(jobs, id, signal));
    },
    'GET /v1/jobs': async (asked) => {
      if (asked.user === undefined) return all['GET /v1/jobs'](asked);
      return (await visible.jobs(asked.user)).map((job) => ({ ...job, log: [] }));
    },
    'GET /v1/jobs/{id}': async (asked) => {
      await seeJob(asked.user, asked.params.id);
      return all['GET /v1/jobs/{id}'](asked);
    },
    'DELETE /v1/jobs/{id}': async (asked) => {
      await seeJob(asked.user, asked.params.id);
      return all['DELETE /v1/jobs/{id}'](asked);
    },
    'GET /v1/jobs/{id}/events': async (asked) => {
      await seeJob(asked.user, asked.params.id);
      return all['GET /v1/jobs/{id}/events'](asked);
    },
    'GET /v1/events': async (asked) => {
      const { user, lastEventId, signal } = asked;
      if (user === undefined || user.scope === null) return all['GET /v1/events'](asked);
      const open = await feed.open(lastEventId, signal);
      return streamEvents(open, describeSelf(), (change) => confineChange(change, user, visible));
    },
  };
  return { ...all, ...own };
}

/** Waits for the end of a job. The check runs as a job, so that it has the rights of its user. */
async function endOf(jobs: JobService, id: number, signal: AbortSignal): Promise<JobRecord> {
  for await (const event of jobs.watch(id, signal)) if (event.type === 'end') break;
  return jobs.get(id);
}

/** @throws AppError with the error of the job */
function judgeDryRun({ error }: JobRecord): { ok: true } {
  if (error === null) return { ok: true };
  throw new AppError(isErrorCode(error.code) ? error.code : 'INTERNAL', error.message, {
    // A record contains JSON only.
    details: error.details as AppError['details'],
    ...(error.hint !== null && { hint: error.hint }),
  });
}

const SEEN_OBJECTS: ReadonlySet<string> = new Set(['networks', 'profiles', 'bootenvs']);

/** Returns the part of a change that a bound user may see. */
async function confineChange(
  change: ClusterChange,
  user: RemoteUser,
  visible: Pick<Visible, 'filterJobs'>,
): Promise<ClusterChange | null> {
  const { scope } = user;
  switch (change.event) {
    case 'reset':
      return change;
    case 'nodes':
      return null;
    case 'objects': {
      const changed = change.changed.filter((name) => SEEN_OBJECTS.has(name));
      return changed.length === 0 ? null : { event: 'objects', changed };
    }
    case 'jobs': {
      const changed = await visible.filterJobs(user, change.changed);
      const { removed } = change;
      return changed.length + removed.length === 0 ? null : { event: 'jobs', changed, removed };
    }
    case 'instances': {
      const changed = change.changed.filter(({ now }) => isWithin(scope, now.instance));
      const left = change.changed.flatMap(({ now, before }) =>
        before !== undefined && isWithin(scope, before) && !isWithin(scope, now.instance)
          ? [before]
          : [],
      );
      const removed = [...change.removed.filter((each) => isWithin(scope, each)), ...left];
      return changed.length + removed.length === 0
        ? null
        : { event: 'instances', changed, removed };
    }
  }
}
