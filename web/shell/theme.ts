import { signal } from '@preact/signals';

const KEY = 'gnt-theme';
const PREFERS_DARK = matchMedia('(prefers-color-scheme: dark)');

/** The chosen colours, or those of the system. */
export const theme = signal<'light' | 'dark'>(read());

function read(): 'light' | 'dark' {
  const kept = localStorage.getItem(KEY);
  if (kept === 'light' || kept === 'dark') return kept;
  return PREFERS_DARK.matches ? 'dark' : 'light';
}

/** Applies the choice. A choice that equals the system's follows the system again. */
export function toggleTheme(): void {
  theme.value = theme.value === 'dark' ? 'light' : 'dark';
  const isSystem = (theme.value === 'dark') === PREFERS_DARK.matches;
  if (isSystem) localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, theme.value);
  applyTheme();
}

export function applyTheme(): void {
  document.documentElement.dataset['theme'] = theme.value;
}

PREFERS_DARK.addEventListener('change', () => {
  theme.value = read();
  applyTheme();
});
