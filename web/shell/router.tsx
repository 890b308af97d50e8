import { computed, signal } from '@preact/signals';
import type { ComponentChildren, JSX } from 'preact';

const address = signal(new URL(location.href));
/** The path of the page that is shown, such as `/instances/web1`. */
export const path = computed(() => address.value.pathname);
export const query = computed(() => address.value.searchParams);

/** Shows another page. */
export function navigate(to: string): void {
  history.pushState(null, '', to);
  address.value = new URL(location.href);
  window.scrollTo(0, 0);
}

/** Changes parameters of the address without a new entry in the history. Null removes one. */
export function setQuery(changes: Readonly<Record<string, string | null>>): void {
  const next = new URL(location.href);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === '') next.searchParams.delete(name);
    else next.searchParams.set(name, value);
  }
  history.replaceState(null, '', next);
  address.value = next;
}

addEventListener('popstate', () => {
  address.value = new URL(location.href);
});

interface LinkProps {
  readonly to: string;
  readonly class?: string;
  readonly 'aria-current'?: 'page' | undefined;
  readonly children: ComponentChildren;
}

/** A link within the page. A modified click opens a new tab as usual. */
export function Link({ to, children, ...rest }: LinkProps): JSX.Element {
  const follow = (event: MouseEvent): void => {
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey)
      return;
    event.preventDefault();
    navigate(to);
  };
  return (
    <a {...rest} href={to} onClick={follow}>
      {children}
    </a>
  );
}

/** Returns the path of an instance's page. */
export function instancePath(name: string, section = ''): string {
  return `/instances/${encodeURIComponent(name)}${section && `/${section}`}`;
}
