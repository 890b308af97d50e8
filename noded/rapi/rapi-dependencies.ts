import type { Clock } from '#shared/clock/clock.ts';
import type { ApiDependencies } from '../api/api-dependencies.ts';

/** What the node's own API is served from, and a little more. */
export interface RapiDependencies extends ApiDependencies {
  readonly nodeName: string;
  readonly clock: Clock;
  /** For metrics. */
  readonly onAnswered: (method: string, status: number) => void;
}
