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
 * A system user without home, shell or password, made when missing. Two nodes on one machine may
 * ask at once.
 * @throws AppError HOST_PREREQUISITE
 */
export async function ensureSystemUser(name: string): Promise<SystemUser> {
  const known = await findUser(name);
  if (known) return known;
  let refusal: unknown;
  try {
    await run('useradd', ['--system', '--user-group', ...HOMELESS, ...LOGIN, name]);
  } catch (error) {
    // Somebody else may have made it meanwhile.
    refusal = error;
  }
  const made = await findUser(name);
  if (made) return made;
  throw new AppError('HOST_PREREQUISITE', `cannot create the user ${name}: ${messageOf(refusal)}`, {
    hint: `Create it: useradd --system --user-group --no-create-home ${name}`,
    cause: refusal,
  });
}

/** Undefined when the host has no such user. */
export async function findUser(name: string): Promise<SystemUser | undefined> {
  const entry = await lookUp(name);
  if (!entry) return undefined;
  const [uid, gid] = [Number(entry[2]), Number(entry[3])];
  // Root is no unprivileged user, whatever its name.
  if (!uid || !gid) throw new Error(`getent passwd ${name}: ${entry.join(':')}`);
  return { uid, gid };
}

/** Fields of a name service entry; undefined when there is none. */
async function lookUp(name: string): Promise<readonly string[] | undefined> {
  try {
    return (await run('getent', ['passwd', name])).stdout.trim().split(':');
  } catch (error) {
    if (error instanceof CommandFailed && error.exitStatus === GETENT_NOT_FOUND) return undefined;
    throw error;
  }
}
