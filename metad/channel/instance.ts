import type { Socket } from 'node:net';
import type { Clock } from '#shared/clock/clock.ts';
import type { Address } from '../dialects/address.ts';
import { Site } from '../dialects/site.ts';
import type { Resource } from '../dialects/tree.ts';
import { MAX_QUEUE_BYTES } from '../limits.ts';
import type { ServedView } from '../view/served-view.ts';
import { ByteQueue } from './byte-queue.ts';
import { createSessionTokens } from './session-tokens.ts';
import type { SessionTokens } from './session-tokens.ts';
import { TokenBucket } from './token-bucket.ts';

/**
 * All that metad holds of one instance: its view and what its guest did with it. Dropping this object drops everything.
 *
 * INVARIANTS: a request sees one view from beginning to end (it takes `view` or `find` once); tokens and the posted password
 * belong to one installation and end with it.
 */
export class Instance {
  #view: ServedView;
  #site: Site;
  #password = '';
  #tokens: SessionTokens;
  readonly #clock: Clock;
  readonly #changeListeners = new Set<() => void>();
  readonly #requestBucket: TokenBucket;
  /** From the host to the guest's `read`, and from the guest's `write` to the host. */
  readonly toGuest = new ByteQueue(MAX_QUEUE_BYTES);
  readonly toHost = new ByteQueue(MAX_QUEUE_BYTES);
  /** Open connections of the guest, of both address families. */
  readonly sockets = new Set<Socket>();

  constructor(view: ServedView, clock: Clock) {
    this.#view = view;
    this.#clock = clock;
    this.#site = new Site(view, { password: '' });
    this.#tokens = createSessionTokens(() => clock.monotonicMs());
    this.#requestBucket = new TokenBucket(view.limits.burst, clock.monotonicMs());
  }

  get view(): ServedView {
    return this.#view;
  }

  get tokens(): SessionTokens {
    return this.#tokens;
  }

  get password(): string {
    return this.#password;
  }

  /**
   * Counts a request, or a connection to a service, against the instance's rate.
   * @returns 0 when it may be answered now, else the milliseconds until it may
   */
  takeRequest(nowMs: number): number {
    const { requestsPerSecond, burst } = this.#view.limits;
    return this.#requestBucket.take({ perSecond: requestsPerSecond, burst }, nowMs);
  }

  /** @throws RenderFailure */
  find(address: Address): Resource | undefined {
    return this.#site.find(address);
  }

  replaceView(view: ServedView): void {
    if (view.instanceId !== this.#view.instanceId) {
      this.#password = '';
      this.replaceTokens();
    }
    this.#view = keepKnownSecrets(this.#view, view);
    this.#renew();
  }

  /** Ends every session token that was given out. */
  replaceTokens(): void {
    this.#tokens = createSessionTokens(() => this.#clock.monotonicMs());
  }

  setPassword(password: string): void {
    this.#password = password;
    this.#renew();
  }

  /** Resolves when anything that the instance reads may have changed, or when the signal says so. */
  async waitForChange(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    await new Promise<void>((resolve) => {
      const done = (): void => {
        this.#changeListeners.delete(done);
        signal.removeEventListener('abort', done);
        resolve();
      };
      this.#changeListeners.add(done);
      signal.addEventListener('abort', done);
    });
  }

  closeConnections(): void {
    for (const socket of [...this.sockets]) socket.destroy();
  }

  #renew(): void {
    this.#site = new Site(this.#view, { password: this.#password });
    for (const wake of [...this.#changeListeners]) wake();
  }
}

/** noded forgets secrets with the job that had them: a later view of the same installation does not take them from the guest. */
function keepKnownSecrets(known: ServedView, next: ServedView): ServedView {
  if (known.instanceId !== next.instanceId) return next;
  const osParameters = new Map(
    [...next.osParameters].map(([name, parameter]) => {
      const isUnknown = parameter.visibility === 'secret' && parameter.value === null;
      const kept = isUnknown ? known.osParameters.get(name) : undefined;
      return [name, kept?.visibility === 'secret' ? kept : parameter];
    }),
  );
  return { ...next, osParameters };
}
