import { AppError, isAppError, messageOf } from '#shared/errors/app-error.ts';
import { run } from '#shared/process/run.ts';

export interface SystemUser {
  readonly uid: number;
  readonly gid: number;
}

/** getent(1): the key was not found. */
const GETENT_NOT_FOUND = 2;

/**
 * A system user without home, shell or password, made when missing. Two nodes on one machine may ask at once.
 * @throws AppError HOST_PREREQUISITE
 */
export async function ensureSystemUser(name: string): Promise<SystemUser> {
  const known = await findUser(name);
  if (known) return known;
  let refusal: unknown;
  try {
    await run('useradd', [
      '--system',
      '--no-create-home',
      '--home-dir',
      '/nonexistent',
      '--shell',
      '/usr/sbin/nologin',
      '--user-group',
      name,
    ]);
  } catch (error) {
    // Somebody else may have made it meanwhile.
    refusal = error;
  }
  const made = await findUser(name);
  if (made) return made;
  throw new AppError('HOST_PREREQUISITE', `cannot make the user ${name}: ${messageOf(refusal)}`, {
    hint: `make it yourself: useradd --system --no-create-home ${name}`,
    cause: refusal,
  });
}

async function findUser(name: string): Promise<SystemUser | undefined> {
  try {
    const { stdout } = await run('getent', ['passwd', name]);
    const [, , uid, gid] = stdout.split(':').map(Number);
    // Root is no unprivileged user, whatever its name.
    if (!uid || !gid) throw new Error(`getent passwd ${name}: ${stdout.trim()}`);
    return { uid, gid };
  } catch (error) {
    const isMissing =
      isAppError(error, 'COMMAND_FAILED') && error.details['exitStatus'] === GETENT_NOT_FOUND;
    if (isMissing) return undefined;
    throw error;
  }
}
