import type { JSX } from 'preact';
import { ApiFailure } from '../../client/api-client.ts';
import { Text } from './text.tsx';

/** Returns the message of a failure as a sentence. */
export function messageOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return message.charAt(0).toUpperCase() + message.slice(1);
}

/** Shows a failure with its remedy. */
export function Failure({ error }: { readonly error: unknown }): JSX.Element {
  const hint = error instanceof ApiFailure ? error.hint : null;
  return (
    <div class="failure" role="alert">
      <p>
        <Text>{messageOf(error)}</Text>
      </p>
      {hint !== null && (
        <p class="hint">
          <Text>{hint}</Text>
        </p>
      )}
    </div>
  );
}
