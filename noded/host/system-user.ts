import { AppError, messageOf } from '#shared/errors/app-error.ts';
import { CommandFailed, run } from '#shared/process/run.ts';

export interface SystemUser {
  readonly uid: number;
  readonly gid: number;
}

/** getent(1): the key was not found. */
const GETENT_NOT_FOUND = 2;
const HOMELESS = ['--no-create-home', '--home-dir', '/nonexistent'];
const LOGIN = ['--shell', '/usr/sbin/nologin'];

/**
 * Returns a system user without home, shell or password, created when missing. Two nodes on one
 * host may do this concurrently.
 * @throws AppError HOST_PREREQUISITE
 */
export async function ensureSystemUser(name: string): Promise<SystemUser> {
  const known = await findUser(name);
  if (known) return known;
  let refusal: unknown;
  try {
    await run('useradd', ['--system', '--user-group', ...HOMELESS, ...LOGIN, name]);
  } catch (error) {
    // Another process may have created it meanwhile.
    refusal = error;
  }
  const made = await findUser(name);
  if (made) return made;
  throw new AppError('HOST_PREREQUISITE', `cannot create the user ${name}: ${messageOf(refusal)}`, {
    hint: `Create it: useradd --system --user-group --no-create-home ${name}`,
    cause: refusal,
  });
}

/** Returns undefined for an unknown user. */
export async function findUser(name: string): Promise<SystemUser | undefined> {
  const entry = await lookUp(name);
  if (!entry) return undefined;
  const [uid, gid] = [Number(entry[2]), Number(entry[3])];
  // Root must not pass as an unprivileged user.
  if (!uid || !gid) throw new Error(`getent passwd ${name}: ${entry.join(':')}`);
  return { uid, gid };
}

/** Returns the fields of an entry; undefined for an unknown user. */
async function lookUp(name: string): Promise<readonly string[] | undefined> {
  try {
    return (await run('getent', ['passwd', name])).stdout.trim().split(':');
  } catch (error) {
    if (error instanceof CommandFailed && error.exitStatus === GETENT_NOT_FOUND) return undefined;
    throw error;
  }
}
