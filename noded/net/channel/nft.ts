import { AppError } from '#shared/errors/app-error.ts';
import { CommandFailed, run } from '#shared/process/run.ts';

/**
 * Applies commands as one transaction in the network namespace at `namespacePath`: all of them or
 * none. They are an argument, not stdin: nft opens /dev/stdin, which fails on the socket that Node
 * makes a child's stdin of. The longest transaction has some 4 KiB; an argument may have 128.
 * @throws AppError NETWORK_SETUP with nft's first words, HOST_PREREQUISITE
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
