import type { NodeClient } from '../client/node-client.ts';
import type { Terminal } from './terminal.ts';
import type { ValueSource } from '../values/value-source.ts';
import type { RootPaths } from '#shared/paths/root-paths.ts';
import type { Clock } from '#shared/clock/clock.ts';

/** Environment that main passes to every command. */
export interface Context {
  /** `gnt-instance`. */
  readonly program: string;
  /** The requested commands; others need not be created. Null: all. */
  readonly only: readonly string[] | null;
  /** Arguments with which other programs start this program. */
  readonly self: readonly string[];
  readonly terminal: Terminal;
  readonly clock: Clock;
  readonly values: ValueSource;
  readonly paths: RootPaths;
  /** Loaded on first use: validators take 0.1 s, which `--help` does not need. */
  readonly client: () => Promise<NodeClient>;
  readonly interrupts: Interrupts;
  /** Prints result text on stdout, with a newline. */
  readonly print: (text: string) => void;
  /** Prints a line for the user on stderr. */
  readonly note: (text: string) => void;
  readonly warn: (text: string) => void;
  /** Sets the exit status without an error, for `gnt-node doctor` and ssh. */
  readonly setExitStatus: (status: number) => void;
}

/**
 * Handlers of SIGINT and SIGTERM. Without a handler the signals end the command with status 130.
 */
export interface Interrupts {
  /** Installs a handler until the returned function is called. */
  take(handler: () => void): () => void;
}
