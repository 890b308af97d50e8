const DEFAULT_WAIT_READY_S = 600;

/**
 * `--wait-ready` takes its value after `=` only: in `--wait-ready NAME` the name is the instance's.
 */
export function expandArguments(argv: readonly string[]): readonly string[] {
  const end = argv.indexOf('--');
  return argv.map((argument, at) =>
    argument === '--wait-ready' && (end === -1 || at < end)
      ? `--wait-ready=${DEFAULT_WAIT_READY_S}`
      : argument,
  );
}

const SENSITIVE = /^(--os-parameters-(secret|private)|--personalization-password|--store)(=|$)/;

/** Whether a value that must not be seen may stand among the arguments. */
export function hasSensitiveArguments(argv: readonly string[]): boolean {
  return argv.some((argument) => SENSITIVE.test(argument));
}
