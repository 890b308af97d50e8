import type { JSX } from 'preact';
import { showControls } from './show-controls.ts';

/**
 * Shows a text that a guest or another user wrote. Control and direction characters appear as
 * their code points, since they can make a text look like another.
 */
export function Text({ children }: { readonly children: string }): JSX.Element {
  return <bdi>{showControls(children)}</bdi>;
}
