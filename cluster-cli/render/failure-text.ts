import { inspect } from 'node:util';
import type { CommandFailure } from '../failures/failure.ts';
import { type Appearance, createPaint } from '../terminal/terminal.ts';
import { sanitizeLine } from './sanitize.ts';

/**
 * Returns the text of a failure. Stage and log come first, so that error and hint are the last
 * lines on the screen.
 */
export function renderFailure(
  failure: CommandFailure,
  appearance: Appearance,
  isDebug: boolean,
): readonly string[] {
  const paint = createPaint(appearance);
  const log = failure.logTail.map((line) => paint('dim', `  ${sanitizeLine(line)}`));
  const heading =
    failure.stage === null
      ? 'last lines of the log:'
      : `last lines of the log of stage ${failure.stage}:`;
  const inStage = failure.stage === null ? '' : ` (stage ${failure.stage})`;
  return [
    ...(log.length > 0 ? [heading, ...log] : []),
    `${paint('red', `error[${failure.code}]:`)} ${sanitizeLine(failure.message)}${inStage}`,
    ...(failure.hint === null ? [] : [`${paint('bold', 'hint:')} ${sanitizeLine(failure.hint)}`]),
    ...(isDebug ? [inspect(failure.cause ?? failure, { depth: 4, colors: false })] : []),
  ];
}
