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
  REQUEST_TOKENS_PER_ATTRIBUTE,
  UNANSWERED_BEYOND_CONNECTIONS,
} from '../config/limits.ts';
import { keepKnownSecrets } from '../view/keep-known-secrets.ts';
import { redactView, type ServedView } from '../view/served-view.ts';
import { ByteQueue } from './byte-queue.ts';
import { Exclusion } from './exclusion.ts';
import { keepLatest, valuesThatWere } from './former-values.ts';
import { GuestAttributeStore } from './guest-attributes.ts';
import { GuestLifecycle } from './guest-lifecycle.ts';
import { RenderedSites } from './rendered-sites.ts';
import { SessionTokens } from './session-tokens.ts';
import { TokenCache } from './token-cache.ts';
import { TokenBucket } from '#shared/bounds/token-bucket.ts';

const NO_VALUES: readonly string[] = [];
const NO_SOCKETS: ReadonlySet<Socket> = new Set();

/**
 * The state of one instance in metad: its view and the effects of its guest. `end` drops
 * everything. Parts that only a running guest needs are created on first use, since a node may know
 * many idle instances.
 *
 * INVARIANTS: a request sees one view from beginning to end (it takes `view` or `find` once);
 * tokens and the posted password belong to one installation and end with it.
 */
export class Instance {
  #view: ServedView;
  #password = '';
  #attributes: GuestAttributeStore | undefined;
  #extraLeaves: SiteState['extraLeaves'];
  #site: Site | undefined;
  #redactedSite: Site | undefined;
  #tokens: SessionTokens | undefined;
  #identityTokens: TokenCache | undefined;
  #requestBucket: TokenBucket | undefined;
  #toGuest: ByteQueue | undefined;
  #toHost: ByteQueue | undefined;
  #sockets: Set<Socket> | undefined;
  #changeListeners: Set<() => void> | undefined;
  #exclusion: Exclusion | undefined;
  /** The key of the agent, with the installation in which the agent introduced itself. */
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
  /** Unanswered requests beyond the rate whose bodies are dropped. */
  refusedBodies = 0;
  /** Whether a body of unknown length is in transfer. */
  isReadingChunks = false;
  readonly #clock: Clock;
  readonly #rendered: RenderedSites;
  readonly #firstQueueOffset: number;

  /**
   * @param rendered shared by all instances of the process
   * @param firstQueueOffset number of the first byte in both directions
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
    return (this.#tokens ??= new SessionTokens(() => this.#clock.monotonicMs()));
  }

  get identityTokens(): TokenCache {
    return (this.#identityTokens ??= new TokenCache(this.#clock));
  }

  get password(): string {
    return this.#password;
  }

  get siteState(): SiteState {
    return {
      password: this.#password,
      ...(this.#attributes && { guestAttributes: this.#attributes.values }),
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

  get bytesToGuest(): number {
    return this.#toGuest?.waitingBytes ?? 0;
  }

  get bytesToHost(): number {
    return this.#toHost?.waitingBytes ?? 0;
  }

  /** Kinds of reports in transfer (http/take-report.ts). */
  get reporting(): Set<string> {
    return (this.#reporting ??= new Set());
  }

  get lifecycle(): GuestLifecycle | undefined {
    return this.#lifecycle;
  }

  /**
   * Whether an earlier metad served the running guest, which may then have secrets that this
   * process does not know.
   */
  get isInherited(): boolean {
    return this.#isInherited;
  }

  /** Marks a guest that runs and was not served here from its start. */
  inherit(): void {
    this.#isInherited = true;
  }

  /**
   * Private and secret values that changed while the guest runs, since it has the former ones. The
   * same array as long as the values are equal.
   */
  get formerValues(): readonly string[] {
    return this.#formerValues;
  }

  /** Resets the state for the start of another guest. */
  beginAnew(): void {
    this.#isInherited = false;
    this.#formerValues = NO_VALUES;
    this.stay();
  }

  get sockets(): ReadonlySet<Socket> {
    return this.#sockets ?? NO_SOCKETS;
  }

  addSocket(socket: Socket): void {
    this.#sockets ??= new Set();
    this.#sockets.add(socket);
    socket.on('close', () => this.removeSocket(socket));
  }

  /** Frees the place of a connection at once: closing takes a while. */
  removeSocket(socket: Socket): void {
    this.#sockets?.delete(socket);
  }

  /** Limit of requests that wait for the end of their answers, on all connections of the guest. */
  get maxUnanswered(): number {
    return this.#view.limits.connections + UNANSWERED_BEYOND_CONNECTIONS;
  }

  /**
   * Takes the key of an installation's agent from its first event: until that event is
   * acknowledged, only the agent runs in the appliance.
   */
  hearAgent(installId: string, reports: readonly InstallReport[]): void {
    if (this.#agentKeyOf(installId) !== undefined) return;
    const [first] = reports;
    const introduced = first && 'body' in first ? readIntroduction(first) : null;
    if (introduced !== null) this.#agent = { installId, keyHex: introduced.keyHex };
  }

  /** @param proof the request's signature of the path */
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
   * Freezes the state of a paused guest, which may continue on another node, until `stay`.
   * @returns the state for the other metad
   */
  leave(): GuestState {
    this.#isLeaving = true;
    this.closeConnections();
    return {
      instanceId: this.#view.instanceId,
      password: this.#password,
      tokens: this.#tokens?.handOver() ?? null,
      toGuest: this.toGuest.hold(),
      toHost: this.toHost.hold(),
      hiddenInputs: [...(this.#lifecycle?.hiddenInputs ?? []), ...this.#formerValues],
    };
  }

  /** Unfreezes the state: the guest continues here. */
  stay(): void {
    this.#isLeaving = false;
    this.#toGuest?.release();
    this.#toHost?.release();
  }

  /**
   * Takes over another metad's state of the guest that is expected here.
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
      ? new SessionTokens(() => this.#clock.monotonicMs(), tokens)
      : this.#tokens;
    [this.#toGuest, this.#toHost] = queues;
    this.setPassword(password);
    this.#lifecycle?.takeOver(hiddenInputs);
    this.#formerValues = keepLatest(hiddenInputs);
    // The guest may know, and report here, secrets that the other metad had lost.
    this.inherit();
  }

  isKeptOut(): boolean {
    if (this.#isLeaving) return true;
    return this.#exclusion?.isActive(this.#clock.monotonicMs()) ?? false;
  }

  /** Excludes a guest that exceeded its limits. */
  keepOut(): void {
    this.#exclusion ??= new Exclusion();
    this.#exclusion.begin(this.#clock.monotonicMs());
  }

  /**
   * Charges a request, or a connection to a service, to the instance's rate.
   * @param cost in usual requests
   * @returns 0 when it may be answered now, else the milliseconds until it may
   */
  takeRequest(nowMs: number, cost = 1): number {
    const { requestsPerSecond, burst } = this.#view.limits;
    this.#requestBucket ??= new TokenBucket(burst, nowMs);
    return this.#requestBucket.take({ perSecond: requestsPerSecond, burst }, nowMs, cost);
  }

  /** Charges for a higher cost than that of a usual request; as {@link takeRequest}. */
  charge(cost: number): number {
    return cost === 0 ? 0 : this.takeRequest(this.#clock.monotonicMs(), cost);
  }

  /** Charges for the consequences of an admitted request, even into debt. */
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

  /** Finds a resource with private and secret values masked. @throws RenderFailure */
  findRedacted(address: Address): Resource | undefined {
    return (this.#redactedSite ??= this.#render(redactView(this.#view))).find(address);
  }

  forgetRendered(): void {
    this.#site = undefined;
    this.#redactedSite = undefined;
  }

  /** @param extraLeaves served beside the new view */
  replaceView(view: ServedView, extraLeaves?: SiteState['extraLeaves']): void {
    if (view.instanceId !== this.#view.instanceId) {
      this.#password = '';
      this.#dropAttributes();
      this.replaceTokens();
    }
    this.#identityTokens?.drop();
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

  replaceTokens(): void {
    this.#tokens = undefined;
  }

  setPassword(password: string): void {
    // A guest may post an empty password repeatedly: that must not render anything again.
    if (password === this.#password) return;
    this.#password = password;
    this.#renew();
  }

  /** Values that the guest wrote as Google's guest attributes. */
  get attributes(): GuestAttributeStore {
    return (this.#attributes ??= new GuestAttributeStore());
  }

  /** @returns false if the guest has written too many values, or too long a one */
  setGuestAttribute(namespace: string, key: string, value: string): boolean {
    const former = this.attributes.values.get(namespace)?.get(key);
    if (!this.attributes.set(namespace, key, value)) return false;
    if (value !== former) this.#renewAttributes();
    return true;
  }

  /** @returns false if there is no such value */
  deleteGuestAttribute(namespace: string, key: string): boolean {
    if (!this.attributes.delete(namespace, key)) return false;
    this.#renewAttributes();
    return true;
  }

  #renewAttributes(): void {
    this.owe(REQUEST_TOKENS_PER_ATTRIBUTE);
    this.#renew();
  }

  #dropAttributes(): void {
    this.#attributes?.[Symbol.dispose]();
    this.#attributes = undefined;
  }

  /** Resolves at the next possible change of the instance's content, or when the signal aborts. */
  waitForChange(signal: AbortSignal): Promise<void> {
    return nextCall((this.#changeListeners ??= new Set()), signal);
  }

  /** Calls the listener at each possible change of the instance's content, until `offChange`. */
  onChange(listener: () => void): void {
    (this.#changeListeners ??= new Set()).add(listener);
  }

  offChange(listener: () => void): void {
    this.#changeListeners?.delete(listener);
  }

  closeConnections(): void {
    for (const socket of [...this.sockets]) socket.destroy();
  }

  end(): void {
    this.#isEnded = true;
    this.#dropAttributes();
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
