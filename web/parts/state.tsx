import type { JSX } from 'preact';

type Tone = 'good' | 'idle' | 'busy' | 'bad' | 'warn';

/** Words and tones of the states that Ganeti names. */
const STATES: ReadonlyMap<string, readonly [Tone, string]> = new Map([
  ['running', ['good', 'running']],
  ['paused', ['warn', 'paused']],
  ['ADMIN_down', ['idle', 'stopped']],
  ['ERROR_down', ['bad', 'not running']],
  ['ERROR_up', ['warn', 'running, should be stopped']],
  ['installing', ['busy', 'installing']],
  ['install_failed', ['bad', 'installation failed']],
  ['ERROR_nodedown', ['bad', 'node does not answer']],
  ['ERROR_nodefails', ['bad', 'node fails']],
  ['ERROR_nodeoffline', ['idle', 'node offline']],
  ['queued', ['idle', 'queued']],
  ['waiting', ['busy', 'waiting']],
  ['canceling', ['busy', 'canceling']],
  ['canceled', ['idle', 'canceled']],
  ['success', ['good', 'success']],
  ['error', ['bad', 'failed']],
  ['up', ['good', 'up']],
  ['silent', ['bad', 'does not answer']],
  ['failing', ['bad', 'fails']],
  ['offline', ['idle', 'offline']],
]);

/** Returns the word for a state of an instance, job or node. */
export function wordOfState(state: string): string {
  return STATES.get(state)?.[1] ?? state;
}

/** Shows a state by a word with a mark, so that it does not depend on colours. */
export function State({ of }: { readonly of: string }): JSX.Element {
  const [tone, word] = STATES.get(of) ?? ['idle', of];
  return <span class={`state ${tone}`}>{word}</span>;
}
