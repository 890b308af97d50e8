import { neededSecrets, type NeededSecrets } from '#shared/contract/error-details.ts';
import { opcode as opcodeSchema, type Opcode, type OpcodeInput } from '#shared/contract/opcode.ts';
import { findUnusable } from '#shared/contract/unusable-text.ts';
import type { JobRecord } from '#shared/contract/job.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { setOwn } from '#shared/json/own-value.ts';
import { canBeMasked } from '#shared/secret/mask.ts';
import type { Context } from '../terminal/context.ts';
import { CommandFailure } from '../failures/failure.ts';
import type { SubmitOptions } from './submit.ts';
import { describeIssue, describeUnusable, nextStepOf } from './describe-issue.ts';
import { watchJob } from '../progress/watch.ts';
import { renderHookBook } from '../render/hook-book.ts';
import { promptHidden, promptShown } from '../terminal/prompt.ts';

/** @see submitAndWatch */
export async function submitJob(
  context: Context,
  input: OpcodeInput,
  options: SubmitOptions,
): Promise<JobRecord | null> {
  const validated = validateOpcode(input);
  if (options.printJobid && options.json)
    throw new AppError('USAGE', '--print-jobid and --json exclude each other', {
      hint: 'Read the id from the JSON',
    });
  const client = await context.client();
  return withSecrets(context, validated, async (full) => {
    warnOfShortValues(context, full);
    const answer = await client.ask('POST /v1/jobs', {
      body: full,
      // A dry run waits for the locks of the instance, as a job does.
      ...(options.dryRun && { query: { 'dry-run': '1' }, timeoutMs: Infinity }),
    });
    if ('ok' in answer) {
      if (options.json) context.print(JSON.stringify(answer));
      else {
        context.print(`${full.opcode} would be accepted; nothing was changed`);
        if (answer.hooks) context.print(renderHookBook(answer.hooks).join('\n'));
      }
      return null;
    }
    const { id } = answer;
    if (options.printJobid) context.print(String(id));
    if (options.submit) {
      context.print(options.json ? JSON.stringify({ id }) : `JobID: ${id}`);
      return null;
    }
    const job = await watchJob(context, id, { json: options.json });
    if (options.json) context.print(JSON.stringify(job, null, 2));
    return job;
  });
}

/**
 * Warns of short values: output of scripts cannot be masked for them without masking ordinary
 * words.
 */
function warnOfShortValues(context: Context, opcode: Opcode): void {
  const parameters = {
    ...('osParametersPrivate' in opcode && opcode.osParametersPrivate),
    ...('osParametersSecret' in opcode && opcode.osParametersSecret),
    ...('personalizationPassword' in opcode && {
      'the password of the package': opcode.personalizationPassword,
    }),
  };
  const short = Object.entries(parameters)
    .filter(([, value]) => value != null && value !== '' && !value.split('\n').some(canBeMasked))
    .map(([name]) => name);
  if (short.length === 0) return;
  context.warn(
    `logs show these values if a script prints them, because they have fewer than four characters: ${short.join(', ')}`,
  );
}

/** @throws AppError VALIDATION that names the field; never the value of a parameter. */
function validateOpcode(input: OpcodeInput): Opcode {
  const unusable = findUnusable(input);
  if (unusable !== undefined)
    throw new AppError('VALIDATION', describeUnusable(unusable), {
      details: { fields: [unusable.path.join('.')] },
    });
  const parsed = opcodeSchema.safeParse(input);
  if (parsed.success) return parsed.data;
  const { issues } = parsed.error;
  const problems = issues.map((issue) => describeIssue(issue, input));
  const steps = new Set(issues.flatMap((issue) => nextStepOf(issue) ?? []));
  throw new AppError('VALIDATION', problems.join('; '), {
    ...(steps.size > 0 && { hint: [...steps].join('; ') }),
    details: { fields: parsed.error.issues.map((issue) => issue.path.join('.')) },
  });
}

/**
 * Prompts once for secrets that the daemon lacks, if there is a terminal. The daemon reports them
 * before any change.
 */
async function withSecrets<T>(
  context: Context,
  opcode: Opcode,
  act: (opcode: Opcode) => Promise<T>,
): Promise<T> {
  try {
    return await act(opcode);
  } catch (error) {
    if (!(error instanceof CommandFailure) || error.code !== 'SECRETS_NEEDED') throw error;
    if (!context.terminal.stdin.isTTY || !('osParametersSecret' in opcode)) throw error;
    const needed = neededSecrets.safeParse(error.details);
    if (!needed.success) throw error;
    return await act(await askSecrets(context, opcode, needed.data));
  }
}

async function askSecrets(
  context: Context,
  opcode: Opcode & { osParametersSecret: Record<string, string | null> },
  { osParameters, packageUser, packagePassword }: NeededSecrets,
): Promise<Opcode> {
  const given: Record<string, string> = {};
  for (const name of osParameters)
    setOwn(given, name, await promptHidden(context, `${name} (secret): `));
  // Adds values to an opcode of the same kind. Validation checks that this kind has these keys.
  return validateOpcode({
    ...opcode,
    osParametersSecret: { ...opcode.osParametersSecret, ...given },
    ...(packageUser && {
      personalizationUser: await promptShown(context, 'user of the package: '),
    }),
    ...(packagePassword && {
      personalizationPassword: await promptHidden(context, 'password of the package: '),
    }),
  } as OpcodeInput);
}
