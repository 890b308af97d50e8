import { installDir } from '../paths/install-dir.ts';
import { programFile } from '../paths/program-file.ts';
import { run } from '../process/run.ts';
import { planSandbox } from './plan-sandbox.ts';

export interface SandboxOptions {
  /** The first number of the program's range of users. */
  readonly firstUid: number;
  readonly args?: readonly string[];
  readonly signal?: AbortSignal | undefined;
}

/** A document takes milliseconds; a program that starts on a busy host, seconds. */
const TIMEOUT_MS = 60_000;

/**
 * Runs one of our programs in a sandbox to read untrusted input: bytes in, text out. It has its own
 * user, no network and no capability, and may only read the programs' own files. Its output is
 * bounded, and as untrusted as its input.
 * @param program its main file, such as `appliance/judge-hooks`
 */
export async function askSandboxed(
  program: string,
  input: string | Uint8Array,
  { firstUid, args: given = [], signal }: SandboxOptions,
): Promise<string> {
  const node = [
    process.execPath,
    '--disable-warning=ExperimentalWarning',
    '--max-old-space-size=256',
    '--permission',
    `--allow-fs-read=${installDir}`,
    programFile(program),
    ...given,
  ];
  const [command, ...args] = planSandbox({
    command: node,
    firstUid,
    group: null,
    hasHostNetwork: false,
  });
  const options = { input, timeoutMs: TIMEOUT_MS, ...(signal && { signal }), cwd: '/' };
  return (await run(command, args, options)).stdout;
}
