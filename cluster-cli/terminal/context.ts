import type { NodeClient } from '../client/node-client.ts';
import type { Terminal } from './terminal.ts';
import type { ValueSource } from '../values/value-source.ts';
import type { RootPaths } from '#shared/paths/root-paths.ts';
import type { Clock } from '#shared/clock/clock.ts';

/** What main gives to every command. */
export interface Context {
  /** `gnt-instance`. */
  readonly program: string;
  /** The commands that are asked for, others of the program need not be made; null: all of them. */
  readonly only: readonly string[] | null;
  /** How this program is started: what other programs start it by. */
  readonly self: readonly string[];
  readonly terminal: Terminal;
  readonly clock: Clock;
  readonly values: ValueSource;
  readonly paths: RootPaths;
  /** Loaded on first use: validators cost a tenth of a second, which `--help` need not pay. */
  readonly client: () => Promise<NodeClient>;
  readonly interrupts: Interrupts;
  /** Result text on stdout; a newline is added. */
  readonly print: (text: string) => void;
  /** One line for the person, on stderr. */
  readonly note: (text: string) => void;
  readonly warn: (text: string) => void;
  /**
   * The command ends with this status although nothing was thrown, as `gnt-node doctor` and ssh do.
   */
  readonly setExitStatus: (status: number) => void;
}

/**
 * SIGINT and SIGTERM, for whoever wants to do more than end. Without a handler they end the command
 * with status 130.
 */
export interface Interrupts {
  /** Takes over until the returned function is called. */
  take(handler: () => void): () => void;
}
