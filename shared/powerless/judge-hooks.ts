import {
  type HookBook,
  type HookQuestion,
  type HookVerdict,
  hookVerdict,
} from '../contract/hook-book.ts';
import { AppError } from '../errors/app-error.ts';
import { parseJson } from '../json/parse-json.ts';
import { installDir } from '../paths/install-dir.ts';
import { programFile } from '../paths/program-file.ts';
import { planPowerless } from './plan-powerless.ts';
import { run } from '../process/run.ts';

export interface JudgeOptions {
  /** Of the range in which the program has its user. */
  readonly firstUid: number;
  readonly signal?: AbortSignal | undefined;
}

/** The Node that runs this, which may read the programs' own files and do nothing else. */
const PROGRAM = [
  process.execPath,
  ...['--disable-warning=ExperimentalWarning', '--max-old-space-size=256'],
  ...['--permission', `--allow-fs-read=${installDir}`],
  programFile('appliance/judge-hooks'),
];
/** A document takes milliseconds; a program that starts on a busy host, seconds. */
const TIMEOUT_MS = 60_000;

/**
 * Reads hooks as the appliance will, by its own code, in a process without power: they are the
 * user's, and nothing of root parses them. It has a user that no other process has, no network, no
 * capability, and what it says is bounded and read as plain data.
 * @returns the order in which they are run
 * @throws AppError VALIDATION with what the appliance would refuse, by place and never by content;
 * HOST_PREREQUISITE when the program did not answer
 */
export async function judgeHooks(
  question: HookQuestion,
  { firstUid, signal }: JudgeOptions,
): Promise<HookBook> {
  const [command, ...args] = planPowerless({
    ...{ command: PROGRAM, firstUid, group: null, hasHostNetwork: false },
  });
  const verdict = await ask(command, args, JSON.stringify(question), signal);
  if (verdict.verdict === 'fine') return verdict.book;
  throw new AppError('VALIDATION', verdict.message, { hint: verdict.hint });
}

async function ask(
  command: string,
  args: readonly string[],
  input: string,
  signal: AbortSignal | undefined,
): Promise<HookVerdict> {
  try {
    const options = { input, timeoutMs: TIMEOUT_MS, ...(signal && { signal }), cwd: '/' };
    const { stdout } = await run(command, args, options);
    return hookVerdict.parse(parseJson(stdout));
  } catch (error) {
    signal?.throwIfAborted();
    throw new AppError('HOST_PREREQUISITE', 'the hooks could not be checked on this host', {
      hint: 'the program that reads them has no rights: it needs the folder of this software to be readable by everybody',
      cause: error,
    });
  }
}
