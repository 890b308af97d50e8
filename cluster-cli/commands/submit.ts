import { opcode as opcodeSchema, type Opcode, type OpcodeInput } from '#shared/contract/opcode.ts';
import type { JobRecord } from '#shared/contract/job.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { NodeClient } from '../client/node-client.ts';
import type { Context } from '../terminal/context.ts';
import { CommandFailure } from '../failures/failure.ts';
import { describeIssue } from './describe-issue.ts';
import { watchJob } from '../progress/watch.ts';
import { promptHidden } from '../terminal/prompt.ts';

/** Options of every command that makes a job. */
export interface SubmitOptions {
  readonly submit?: boolean;
  readonly dryRun?: boolean;
  readonly json?: boolean;
}

/**
 * Sends an opcode and follows it as the options say. Null when there is nothing to follow: `--submit`, `--dry-run`.
 * @throws AppError VALIDATION before anything is sent; CommandFailure with what the daemon or the job said.
 */
export async function submitAndWatch(
  context: Context,
  input: OpcodeInput,
  options: SubmitOptions,
): Promise<JobRecord | null> {
  const validated = validateOpcode(input);
  const client = await context.client();
  return withSecrets(context, client, validated, async (full) => {
    if (options.dryRun) {
      await client.dryRun(full);
      context.print(
        options.json
          ? JSON.stringify({ ok: true })
          : `${full.opcode} would be accepted; nothing was changed`,
      );
      return null;
    }
    const id = await client.submit(full);
    if (options.submit) {
      context.print(options.json ? JSON.stringify({ id }) : `JobID: ${id}`);
      return null;
    }
    const job = await watchJob(context, id);
    if (options.json) context.print(JSON.stringify(job, null, 2));
    return job;
  });
}

/** @throws AppError VALIDATION that names the field; never the value of a parameter. */
function validateOpcode(input: OpcodeInput): Opcode {
  const parsed = opcodeSchema.safeParse(input);
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map((issue) => describeIssue(issue, input));
  throw new AppError('VALIDATION', problems.join('; '), {
    details: { fields: parsed.error.issues.map((issue) => issue.path.join('.')) },
  });
}

/** Asks for the secrets that the daemon misses, once, when a person is there to give them. Missing ones are found before anything changes. */
async function withSecrets<T>(
  context: Context,
  client: NodeClient,
  opcode: Opcode,
  act: (opcode: Opcode) => Promise<T>,
): Promise<T> {
  try {
    return await act(opcode);
  } catch (error) {
    if (!(error instanceof CommandFailure) || error.code !== 'SECRETS_NEEDED') throw error;
    if (!context.terminal.stdin.isTTY || !('osParametersSecret' in opcode)) throw error;
    // A job's error has no details; the same question without a job has.
    const needed = neededSecrets(error) ?? neededSecrets(await refusalOf(client, opcode));
    if (needed === null) throw error;
    return await act(await askSecrets(context, opcode, needed));
  }
}

async function refusalOf(client: NodeClient, opcode: Opcode): Promise<unknown> {
  try {
    await client.dryRun(opcode);
    return null;
  } catch (error) {
    return error;
  }
}

interface NeededSecrets {
  readonly names: readonly string[];
  readonly isPasswordNeeded: boolean;
}

/** Name under which the daemon counts the password of a personalization package among the secrets. */
const PASSWORD_NAME = 'personalization-password';

function neededSecrets(error: unknown): NeededSecrets | null {
  if (!(error instanceof CommandFailure) || error.code !== 'SECRETS_NEEDED') return null;
  const names: unknown = error.details['names'];
  if (!Array.isArray(names)) return null;
  const texts = names.filter((name): name is string => typeof name === 'string');
  return {
    names: texts.filter((name) => name !== PASSWORD_NAME),
    isPasswordNeeded: texts.includes(PASSWORD_NAME),
  };
}

async function askSecrets(
  context: Context,
  opcode: Opcode & { osParametersSecret: Record<string, string | null> },
  needed: NeededSecrets,
): Promise<Opcode> {
  const given: Record<string, string> = {};
  for (const name of needed.names) given[name] = await promptHidden(context, `${name} (secret): `);
  // An opcode of the same kind: values are added, which every kind allows.
  const full = {
    ...opcode,
    osParametersSecret: { ...opcode.osParametersSecret, ...given },
  } as Opcode;
  if (!needed.isPasswordNeeded) return full;
  const personalizationPassword = await promptHidden(context, 'password of the package: ');
  return validateOpcode({ ...full, personalizationPassword } as OpcodeInput);
}
