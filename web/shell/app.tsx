import type { JSX } from 'preact';
import { useEffect } from 'preact/hooks';
import { connection, lostAtMs } from '../live/cluster.ts';
import { isRoot, lastSession, logOut, session } from '../live/session.ts';
import { Asking } from '../parts/ask.tsx';
import { formatTime } from '../parts/format.ts';
import { Text } from '../parts/text.tsx';
import { Login } from './login.tsx';
import { pageOf, sections } from './pages.tsx';
import { Link, path } from './router.tsx';
import { Notices } from './notices.tsx';
import { theme, toggleTheme } from './theme.ts';

export function App(): JSX.Element {
  useEffect(() => {
    addEventListener('keydown', focusFilter);
    return () => removeEventListener('keydown', focusFilter);
  }, []);
  return (
    <>
      <a class="skip" href="#content">
        Skip to the content
      </a>
      <Navigation />
      <div class="page" key={lastSession.value?.user}>
        <Lost />
        {lastSession.value !== null && pageOf(path.value)}
      </div>
      <Notices />
      <Asking />
      <Login />
    </>
  );
}

function Navigation(): JSX.Element {
  const { user, node, version } = lastSession.value ?? {};
  return (
    <nav aria-label="Main">
      <Link to="/instances" class="brand">
        gnt
      </Link>
      <ul>
        {sections().map(({ title, to }) => (
          <li key={to}>
            <Link to={to} aria-current={isCurrent(to) ? 'page' : undefined}>
              {title}
            </Link>
          </li>
        ))}
      </ul>
      <div class="about">
        <Connection />
        {node !== undefined && (
          <p title={`gnt ${version ?? ''}`}>
            {user} on {node}
          </p>
        )}
        <button type="button" class="quiet" onClick={toggleTheme}>
          {theme.value === 'dark' ? 'Light colours' : 'Dark colours'}
        </button>
        {user !== undefined && !isRoot && (
          <button type="button" class="quiet" onClick={() => void logOut()}>
            Log out
          </button>
        )}
      </div>
    </nav>
  );
}

function isCurrent(section: string): boolean {
  const shown = ['/', '/launch'].includes(path.value) ? '/instances' : path.value;
  return shown === section || shown.startsWith(`${section}/`);
}

function Connection(): JSX.Element {
  const state = connection.value;
  const word =
    state === 'open' ? 'Live' : state === 'connecting' ? 'Connecting …' : 'Reconnecting …';
  return (
    <p class={`connection ${state === 'open' ? 'open' : 'broken'}`} role="status">
      {word}
    </p>
  );
}

/** Says that the page may be out of date. */
function Lost(): JSX.Element {
  const since = lostAtMs.value;
  const isShown = since !== null && session.value !== null;
  return (
    <div role="status">
      {isShown && (
        <p class="lost">
          <Text>{lastSession.value?.node ?? 'The node'}</Text> has not answered since{' '}
          {formatTime(since)}. This page shows its state at that time.
          {isRoot && ' If gnt-cluster web has ended, start it again and open the new address.'}
        </p>
      )}
    </div>
  );
}

/** A slash moves to the filter of the page, as in many other programs. */
function focusFilter(event: KeyboardEvent): void {
  const target = event.target as HTMLElement;
  if (event.key !== '/' || target.closest('input, textarea, select, [contenteditable], .terminal'))
    return;
  const filter = document.querySelector<HTMLElement>('[data-filter]');
  if (filter === null) return;
  event.preventDefault();
  filter.focus();
}
