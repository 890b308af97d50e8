import type { Socket } from 'node:net';
import { nextCall } from '#shared/abort/next-call.ts';
import type { Clock } from '#shared/clock/clock.ts';
import type { GuestState } from '#shared/contract/guest-handover.ts';
import type { InstallReport } from '#shared/contract/install-event.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { isPathSigned, readIntroduction } from '#shared/secret/event-signature.ts';
import type { Address } from '../dialects/address.ts';
import { Site, type SiteState } from '../dialects/site.ts';
import type { Resource } from '../dialects/tree.ts';
import {
  MAX_QUEUE_BYTES,
  MAX_RENDERED_SITES,
  UNANSWERED_BEYOND_CONNECTIONS,
} from '../config/limits.ts';
import { keepKnownSecrets } from '../view/keep-known-secrets.ts';
import { redactView, type ServedView } from '../view/served-view.ts';
import { ByteQueue } from './byte-queue.ts';
import { Exclusion } from './exclusion.ts';
import { keepLatest, valuesThatWere } from './former-values.ts';
import { GuestLifecycle } from './guest-lifecycle.ts';
import { RenderedSites } from './rendered-sites.ts';
import { createSessionTokens } from './session-tokens.ts';
import type { SessionTokens } from './session-tokens.ts';
import { TokenBucket } from '#shared/bounds/token-bucket.ts';

const NO_VALUES: readonly string[] = [];
const NO_SOCKETS: ReadonlySet<Socket> = new Set();

/**
 * All that metad holds of one instance: its view and what its guest did with it. `end` drops
 * everything. What only a guest that is up needs is made when it is first needed, since a node may
 * know many more instances than are ever busy.
 *
 * INVARIANTS: a request sees one view from beginning to end (it takes `view` or `find` once);
 * tokens and the posted password belong to one installation and end with it.
 */
export class Instance {
  #view: ServedView;
  #password = '';
  #extraLeaves: SiteState['extraLeaves'];
  #site: Site | undefined;
  #redactedSite: Site | undefined;
  #tokens: SessionTokens | undefined;
  #requestBucket: TokenBucket | undefined;
  #toGuest: ByteQueue | undefined;
  #toHost: ByteQueue | undefined;
  #sockets: Set<Socket> | undefined;
  #changeListeners: Set<() => void> | undefined;
  #exclusion: Exclusion | undefined;
  /** The agent's key, of the installation in which the agent introduced itself. */
  #agent: { readonly installId: string; readonly keyHex: string } | undefined;
  #isEnded = false;
  #reporting: Set<string> | undefined;
  #lifecycle: GuestLifecycle | undefined;
  #isInherited = false;
  #formerValues: readonly string[] = NO_VALUES;
  #isLeaving = false;
  /**
   * Requests that wait for the end of their answers; counted by their connections (http/peer.ts).
   */
  unanswered = 0;
  /** Requests beyond the rate whose bodies are dropped, and that are not answered yet. */
  refusedBodies = 0;
  /** A body of unknown length is on its way. */
  isReadingChunks = false;
  readonly #clock: Clock;
  readonly #rendered: RenderedSites;
  readonly #firstQueueOffset: number;

  /**
   * @param rendered shared by all instances of the process
   * @param firstQueueOffset where the bytes of both directions are numbered from
   */
  constructor(
    view: ServedView,
    clock: Clock,
    rendered = new RenderedSites(MAX_RENDERED_SITES),
    firstQueueOffset = 0,
  ) {
    this.#view = view;
    this.#lifecycle = view.lifecycle && new GuestLifecycle(view.lifecycle);
    this.#clock = clock;
    this.#rendered = rendered;
    this.#firstQueueOffset = firstQueueOffset;
  }

  get view(): ServedView {
    return this.#view;
  }

  get tokens(): SessionTokens {
    return (this.#tokens ??= createSessionTokens(() => this.#clock.monotonicMs()));
  }

  get password(): string {
    return this.#password;
  }

  /** What it is served beside its view. */
  get siteState(): SiteState {
    return {
      password: this.#password,
      ...(this.#extraLeaves && { extraLeaves: this.#extraLeaves }),
    };
  }

  /** From the host to the guest's `read`. */
  get toGuest(): ByteQueue {
    return (this.#toGuest ??= new ByteQueue(MAX_QUEUE_BYTES, this.#firstQueueOffset));
  }

  /** From the guest's `write` to the host. */
  get toHost(): ByteQueue {
    return (this.#toHost ??= new ByteQueue(MAX_QUEUE_BYTES, this.#firstQueueOffset));
  }

  /** Bytes that wait in each direction. */
  get bytesToGuest(): number {
    return this.#toGuest?.waitingBytes ?? 0;
  }

  get bytesToHost(): number {
    return this.#toHost?.waitingBytes ?? 0;
  }

  /** Kinds of reports that are on their way (http/take-report.ts). */
  get reporting(): Set<string> {
    return (this.#reporting ??= new Set());
  }

  /** What the guest says of its run lists; undefined without them. */
  get lifecycle(): GuestLifecycle | undefined {
    return this.#lifecycle;
  }

  /**
   * Whether a metad before this one served the guest that is up: it may have secrets of that one,
   * which nobody knows any more.
   */
  get isInherited(): boolean {
    return this.#isInherited;
  }

  /** It is up, and was not heard of here from its start on. */
  inherit(): void {
    this.#isInherited = true;
  }

  /**
   * Private and secret values that were changed while the guest is up, which has the former ones.
   * The same array as long as it says the same.
   */
  get formerValues(): readonly string[] {
    return this.#formerValues;
  }

  /** Another guest starts: it has what it is served here, wherever the last one was to go. */
  beginAnew(): void {
    this.#isInherited = false;
    this.#formerValues = NO_VALUES;
    this.stay();
  }

  /** Open connections of the guest, of both address families. */
  get sockets(): ReadonlySet<Socket> {
    return this.#sockets ?? NO_SOCKETS;
  }

  /** Counts a connection as the guest's until it is closed. */
  addSocket(socket: Socket): void {
    this.#sockets ??= new Set();
    this.#sockets.add(socket);
    socket.on('close', () => this.removeSocket(socket));
  }

  /** Makes room for another connection at once: closing takes a while. */
  removeSocket(socket: Socket): void {
    this.#sockets?.delete(socket);
  }

  /**
   * How many requests may wait for the end of their answers, on all of the guest's connections
   * together.
   */
  get maxUnanswered(): number {
    return this.#view.limits.connections + UNANSWERED_BEYOND_CONNECTIONS;
  }

  /**
   * Takes the key of an installation's agent from its first event: until that was acknowledged,
   * nothing runs in the appliance but the agent.
   */
  hearAgent(installId: string, reports: readonly InstallReport[]): void {
    if (this.#agentKeyOf(installId) !== undefined) return;
    const [first] = reports;
    const introduced = first && 'body' in first ? readIntroduction(first) : null;
    if (introduced !== null) this.#agent = { installId, keyHex: introduced.keyHex };
  }

  /** @param proof what a request for the path says of itself */
  isOfAgent(path: string, proof: unknown): boolean {
    const installId = this.#view.install?.plan.installId;
    const keyHex = installId === undefined ? undefined : this.#agentKeyOf(installId);
    return keyHex !== undefined && typeof proof === 'string' && isPathSigned(keyHex, path, proof);
  }

  #agentKeyOf(installId: string): string | undefined {
    const { install } = this.#view;
    const told = install?.plan.installId === installId ? install.agentKey : undefined;
    return told ?? (this.#agent?.installId === installId ? this.#agent.keyHex : undefined);
  }

  /**
   * The guest stands still, and may go on elsewhere: what it and its host have here changes no
   * more, until `stay`.
   * @returns what the other metad goes on with
   */
  leave(): GuestState {
    this.#isLeaving = true;
    this.closeConnections();
    return {
      ...{ instanceId: this.#view.instanceId, password: this.#password },
      ...{ tokens: this.#tokens?.handOver() ?? null },
      ...{ toGuest: this.toGuest.hold(), toHost: this.toHost.hold() },
      hiddenInputs: [...(this.#lifecycle?.hiddenInputs ?? []), ...this.#formerValues],
    };
  }

  /** The guest goes on here. */
  stay(): void {
    this.#isLeaving = false;
    this.#toGuest?.release();
    this.#toHost?.release();
  }

  /**
   * Goes on with what another metad had of the guest that is expected here.
   * @throws AppError CONFLICT, VALIDATION
   */
  arrive({ instanceId, tokens, password, toGuest, toHost, hiddenInputs }: GuestState): void {
    if (instanceId !== this.#view.instanceId)
      throw new AppError(
        'CONFLICT',
        `the handed-over state belongs to the installation ${instanceId}`,
      );
    const queues = [toGuest, toHost].map((state) => ByteQueue.takeOver(MAX_QUEUE_BYTES, state));
    this.#tokens = tokens
      ? createSessionTokens(() => this.#clock.monotonicMs(), tokens)
      : this.#tokens;
    [this.#toGuest, this.#toHost] = queues;
    this.setPassword(password);
    this.#lifecycle?.takeOver(hiddenInputs);
    this.#formerValues = keepLatest(hiddenInputs);
    // What that metad had lost, its guest may know, and say here.
    this.inherit();
  }

  /** Whether the guest gets no new connection now. */
  isKeptOut(): boolean {
    if (this.#isLeaving) return true;
    return this.#exclusion?.isActive(this.#clock.monotonicMs()) ?? false;
  }

  /** The guest went beyond what it may have under way. */
  keepOut(): void {
    this.#exclusion ??= new Exclusion();
    this.#exclusion.begin(this.#clock.monotonicMs());
  }

  /**
   * Counts a request, or a connection to a service, against the instance's rate.
   * @param cost in usual requests
   * @returns 0 when it may be answered now, else the milliseconds until it may
   */
  takeRequest(nowMs: number, cost = 1): number {
    const { requestsPerSecond, burst } = this.#view.limits;
    this.#requestBucket ??= new TokenBucket(burst, nowMs);
    return this.#requestBucket.take({ perSecond: requestsPerSecond, burst }, nowMs, cost);
  }

  /** Counts what turned out to cost more than a usual request; as {@link takeRequest}. */
  charge(cost: number): number {
    return cost === 0 ? 0 : this.takeRequest(this.#clock.monotonicMs(), cost);
  }

  /** Counts what follows from a request that has been let in, be it a debt. */
  owe(cost: number): void {
    const nowMs = this.#clock.monotonicMs();
    this.#requestBucket ??= new TokenBucket(this.#view.limits.burst, nowMs);
    const { requestsPerSecond, burst } = this.#view.limits;
    this.#requestBucket.owe({ perSecond: requestsPerSecond, burst }, nowMs, cost);
  }

  /** @throws RenderFailure */
  find(address: Address): Resource | undefined {
    return (this.#site ??= this.#render(this.#view)).find(address);
  }

  /** What the guest would get, with private and secret values masked. @throws RenderFailure */
  findRedacted(address: Address): Resource | undefined {
    return (this.#redactedSite ??= this.#render(redactView(this.#view))).find(address);
  }

  forgetRendered(): void {
    this.#site = undefined;
    this.#redactedSite = undefined;
  }

  /** @param extraLeaves what is served beside the new view */
  replaceView(view: ServedView, extraLeaves?: SiteState['extraLeaves']): void {
    if (view.instanceId !== this.#view.instanceId) {
      this.#password = '';
      this.replaceTokens();
    }
    const former = this.#view;
    this.#view = keepKnownSecrets(former, view);
    this.#keepFormerValues(former);
    if (!view.lifecycle) this.#lifecycle = undefined;
    else if (this.#lifecycle) this.#lifecycle.follow(view.lifecycle);
    else this.#lifecycle = new GuestLifecycle(view.lifecycle);
    this.#extraLeaves = extraLeaves;
    this.#renew();
  }

  #keepFormerValues(former: ServedView): void {
    const values = valuesThatWere(former, this.#view);
    if (values.length > 0) this.#formerValues = keepLatest([...this.#formerValues, ...values]);
  }

  /** Ends every session token that was given out. */
  replaceTokens(): void {
    this.#tokens = undefined;
  }

  setPassword(password: string): void {
    // An empty one may be posted again and again: it changes nothing that would be rendered.
    if (password === this.#password) return;
    this.#password = password;
    this.#renew();
  }

  /**
   * Resolves when anything that the instance reads may have changed, or when the signal says so.
   */
  waitForChange(signal: AbortSignal): Promise<void> {
    return nextCall((this.#changeListeners ??= new Set()), signal);
  }

  /** Calls whenever anything that the instance reads may have changed, until `offChange`. */
  onChange(listener: () => void): void {
    (this.#changeListeners ??= new Set()).add(listener);
  }

  offChange(listener: () => void): void {
    this.#changeListeners?.delete(listener);
  }

  closeConnections(): void {
    for (const socket of [...this.sockets]) socket.destroy();
  }

  /** The instance is not served any more. */
  end(): void {
    this.#isEnded = true;
    this.closeConnections();
    this.#forget();
  }

  #renew(): void {
    this.#forget();
    for (const wake of [...(this.#changeListeners ?? [])]) wake();
  }

  #render(view: ServedView): Site {
    if (!this.#isEnded) this.#rendered.add(this);
    return new Site(view, this.siteState);
  }

  #forget(): void {
    this.forgetRendered();
    this.#rendered.delete(this);
  }
}
