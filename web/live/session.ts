import { batch, computed, signal } from '@preact/signals';
import { ApiFailure, createApiClient, readFailure, type Schemas } from '../../client/api-client.ts';

type Session = Schemas['WebSession'];

/** The user of this browser; null before a login; undefined before the first answer. */
export const session = signal<Session | null | undefined>(undefined);
/** The last session until a logout. Its page stays in place below the login after an expiry. */
export const lastSession = signal<Session | null>(null);
export const mayWrite = computed(() => lastSession.value?.role === 'write');
/** True on the loopback page of `gnt-cluster web`, which alone may change OS definitions. */
export const isRoot = location.protocol === 'http:';
/** Users bound to instances do not see the cluster. */
export const seesCluster = computed(() => lastSession.value?.isBound === false);

const CSRF_HEADER = 'X-Gnt-Csrf';
/** Far below the time after which an idle session expires. */
const PROLONG_MS = 60_000;
/** Marks requests without a user's action, which do not prolong the session. */
const BACKGROUND_HEADER = 'X-Gnt-Background';

/** Calls the node's API for an action of the user. */
export const api = createApiClient({ baseUrl: location.origin, onRequest: addCsrf, fetch: send });
/** Calls the node's API for the page itself, such as after an event. */
export const backgroundApi = createApiClient({
  baseUrl: location.origin,
  onRequest: (request) => {
    addCsrf(request);
    request.headers.set(BACKGROUND_HEADER, '1');
  },
  fetch: send,
});

function addCsrf(request: Request): void {
  if (session.value) request.headers.set(CSRF_HEADER, session.value.csrf);
}

async function send(request: Request): Promise<Response> {
  const response = await fetch(request);
  if (response.status === 401) endSession();
  return response;
}

/** Requests a stream of the API. @throws ApiFailure */
export async function openStream(
  path: string,
  signal: AbortSignal,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> {
  const response = await fetch(path, { headers: { ...headers, [BACKGROUND_HEADER]: '1' }, signal });
  if (response.ok) return response;
  if (response.status === 401) endSession();
  throw await readFailure(response);
}

/** Shows the login. The page keeps its content. */
export function endSession(): void {
  session.value = null;
}

/** Asks for the user of the cookie. */
export async function loadSession(
  headers: Readonly<Record<string, string>> = { [BACKGROUND_HEADER]: '1' },
): Promise<void> {
  const response = await fetch('/session', { headers });
  if (response.status === 401) session.value = null;
  else if (response.ok) startSession((await response.json()) as Session);
  else throw await readFailure(response);
}

function startSession(started: Session): void {
  batch(() => {
    session.value = started;
    lastSession.value = started;
  });
}

/** @throws ApiFailure for a wrong name or password, and after too many attempts */
export async function logIn(user: string, password: string): Promise<void> {
  const response = await fetch('/login', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ user, password }),
  }).catch(() => {
    throw new ApiFailure(0, { code: 'UNREACHABLE', message: 'The node does not answer.' });
  });
  if (!response.ok) throw await readFailure(response);
  await loadSession();
}

export async function logOut(): Promise<void> {
  const headers = { [CSRF_HEADER]: session.value?.csrf ?? '' };
  await fetch('/logout', { method: 'POST', headers });
  batch(() => {
    session.value = null;
    lastSession.value = null;
  });
}

/**
 * Prolongs the session while the user works, since most requests of the page are in the background.
 * A page without a session checks again when it comes into view: another tab may have logged in.
 */
export function keepSession(): void {
  let prolongedAt = performance.now();
  const prolong = (): void => {
    if (!session.value || performance.now() - prolongedAt < PROLONG_MS) return;
    prolongedAt = performance.now();
    void loadSession({}).catch(() => undefined);
  };
  addEventListener('pointerdown', prolong, { capture: true });
  addEventListener('keydown', prolong, { capture: true });
  const check = (): void => void loadSession().catch(() => undefined);
  document.addEventListener('visibilitychange', () => {
    if (session.value === null && !document.hidden) check();
  });
  // A page from the browser's back-forward cache may belong to a session that has ended.
  addEventListener('pageshow', ({ persisted }) => {
    if (persisted) check();
  });
}
