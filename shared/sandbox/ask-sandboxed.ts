import { installDir } from '../paths/install-dir.ts';
import { programFile } from '../paths/program-file.ts';
import { run } from '../process/run.ts';
import { planSandbox } from './plan-sandbox.ts';

export interface SandboxOptions {
  /** The first number of the range in which the program has its user. */
  readonly firstUid: number;
  /** Arguments of the program. */
  readonly args?: readonly string[];
  readonly signal?: AbortSignal | undefined;
}

/** A document takes milliseconds; a program that starts on a busy host, seconds. */
const TIMEOUT_MS = 60_000;

/**
 * Has one of our programs read what a stranger wrote: bytes in, text out, in a process without
 * power. It has a user that no other process has, no network, no capability, and may read the
 * programs' own files and do nothing else. What it says is bounded, and as foreign as what it read.
 * @param program its main file, such as `appliance/judge-hooks`
 */
export async function askSandboxed(
  program: string,
  input: string | Uint8Array,
  { firstUid, args: given = [], signal }: SandboxOptions,
): Promise<string> {
  const node = [
    process.execPath,
    ...['--disable-warning=ExperimentalWarning', '--max-old-space-size=256'],
    ...['--permission', `--allow-fs-read=${installDir}`],
    ...[programFile(program), ...given],
  ];
  const [command, ...args] = planSandbox({
    ...{ command: node, firstUid, group: null, hasHostNetwork: false },
  });
  const options = { input, timeoutMs: TIMEOUT_MS, ...(signal && { signal }), cwd: '/' };
  return (await run(command, args, options)).stdout;
}
