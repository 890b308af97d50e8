import { CommanderError } from 'commander';
import { systemClock } from '#shared/clock/clock.ts';
import { AppError, isAppError, messageOf } from '#shared/errors/app-error.ts';
import { errorCodes } from '#shared/errors/codes.ts';
import { createLogger } from '#shared/log/log.ts';
import { readVersion } from '#shared/paths/read-version.ts';
import { forbidCores } from '#shared/sys/forbid-cores.ts';
import { releaseMemoryWhenSettled } from '#shared/sys/release-memory.ts';
import { claimRoot } from '#shared/sys/claim-root.ts';
import { parseConfig, type NodedConfig, type NodedOptions } from './wiring/config.ts';
import { createNodedProgram } from './wiring/program.ts';
import { requireTrustedRoot } from './wiring/trust-root.ts';
import { startNode } from './wiring/start-node.ts';
import { startPatiently } from './wiring/start-patiently.ts';
import { tellReady } from './host/systemd/tell-ready.ts';

async function main(): Promise<number> {
  const program = createNodedProgram(readVersion())
    .exitOverride()
    .configureOutput({ outputError: () => undefined });
  let config: NodedConfig;
  try {
    program.parse();
    const { GNT_ROOT: root, CREDENTIALS_DIRECTORY: credentials } = process.env;
    config = parseConfig(program.opts<NodedOptions>(), root || '/', credentials);
    if (process.arch !== 'x64') {
      const message = `gnt-noded requires x86-64, this host is ${process.arch}`;
      throw new AppError('HOST_PREREQUISITE', message, {
        hint: 'gnt-metad --ganeti runs on other architectures, without gnt-noded.',
      });
    }
    if (process.getuid?.() !== 0) {
      throw new AppError('NOT_ROOT', 'gnt-noded must run as root', {
        hint: 'Run it as root. Its child processes run with fewer privileges.',
      });
    }
  } catch (error) {
    return reportStartFailure(error);
  }
  forbidCores();
  const logger = createLogger({ program: 'gnt-noded', level: config.logLevel, fd: 2 });
  const stopping = Promise.withResolvers<NodeJS.Signals>();
  const stop = new AbortController();
  for (const signal of ['SIGTERM', 'SIGINT'] as const)
    process.on(signal, () => {
      stop.abort();
      stopping.resolve(signal);
    });
  try {
    await requireTrustedRoot(config.paths);
    // Held until this process ends, for whatever reason.
    claimRoot(config.paths);
    const { NOTIFY_SOCKET: notifySocket, ...environment } = process.env;
    const node = await startPatiently(() => startNode(config, logger, environment), {
      ...{ stop: stop.signal, clock: systemClock, logger },
    });
    tellReady(notifySocket, logger);
    releaseMemoryWhenSettled();
    const signal = await stopping.promise;
    logger.info('node.stopping', { signal });
    await node.stop();
    return 0;
  } catch (error) {
    logger.error('node.failed', { err: error });
    return reportStartFailure(error);
  }
}

function reportStartFailure(error: unknown): number {
  if (error instanceof CommanderError) {
    if (error.exitCode === 0) return 0;
    process.stderr.write(
      `error[USAGE]: ${error.message.replace(/^error: /, '')}\nhint: gnt-noded --help\n`,
    );
    return 2;
  }
  if (isAppError(error)) {
    process.stderr.write(`error[${error.code}]: ${error.message}\n`);
    if (error.hint !== undefined) process.stderr.write(`hint: ${error.hint}\n`);
    return errorCodes[error.code];
  }
  process.stderr.write(`error[INTERNAL]: ${messageOf(error)}\n`);
  return 1;
}

// A leftover handle in the event loop must not keep the process running.
process.exit(await main());
