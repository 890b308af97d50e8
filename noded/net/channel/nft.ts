import { AppError } from '#shared/errors/app-error.ts';
import { CommandFailed, run } from '#shared/process/run.ts';

/**
 * Applies commands as one transaction in the network namespace at `namespacePath`. They are an
 * argument instead of stdin, because nft opens /dev/stdin, which fails on the socket that Node uses
 * for a child's stdin. The longest transaction has about 4 KiB; the limit of an argument is 128
 * KiB.
 * @throws AppError NETWORK_SETUP with the first line of nft's stderr, HOST_PREREQUISITE
 */
export async function applyNftCommands(namespacePath: string, commands: string): Promise<void> {
  try {
    await run('nsenter', [`--net=${namespacePath}`, 'nft', commands]);
  } catch (error) {
    if (!(error instanceof CommandFailed)) throw error;
    const stderr = error.stderr.trim();
    if (/failed to execute nft/.test(stderr)) {
      throw new AppError('HOST_PREREQUISITE', 'nft is not installed', {
        hint: 'Install it: apt-get install nftables',
        cause: error,
      });
    }
    throw new AppError('NETWORK_SETUP', `nft: ${stderr.split('\n')[0] || error.message}`, {
      details: { stderr },
      cause: error,
    });
  }
}
