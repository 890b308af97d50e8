import { systemClock } from '#shared/clock/clock.ts';
import { AppError, isAppError, messageOf, systemCodeOf } from '#shared/errors/app-error.ts';
import { errorCodes } from '#shared/errors/codes.ts';
import { createLogger } from '#shared/log/log.ts';
import type { Logger, LogOptions, RootLogger } from '#shared/log/log.ts';
import { readVersion } from '#shared/paths/read-version.ts';
import { forbidCores } from '#shared/sys/forbid-cores.ts';
import { releaseMemoryWhenSettled } from '#shared/sys/release-memory.ts';
import { parseConfig } from './config/config.ts';
import { formatUsage } from './config/options.ts';
import type { MetadConfig } from './config/config.ts';
import { startDaemon } from './daemon.ts';
import { startGanetiDaemon } from './ganeti-daemon.ts';

async function main(): Promise<void> {
  const config = parseConfig(process.argv.slice(2), process.env.GNT_ROOT ?? '/');
  if (config === 'help' || config === 'version') {
    process.stdout.write(config === 'help' ? formatUsage() : `${readVersion()}\n`);
    return;
  }
  forbidCores();
  const file = config.kind === 'ganeti' ? config.logFile : null;
  const logger = openLog({ program: 'gnt-metad', level: config.logLevel, fd: 2, file });
  const daemon = await start(config, logger);
  logger.info('metad.ready', { mode: config.kind });
  releaseMemoryWhenSettled();
  const stop = (signal: NodeJS.Signals): void => {
    logger.info('metad.stopping', { signal });
    daemon[Symbol.asyncDispose]().then(
      () => process.exit(0),
      (error: unknown) => {
        logger.error('metad.stop-failed', { error: messageOf(error) });
        process.exit(1);
      },
    );
  };
  process.once('SIGTERM', stop);
  process.once('SIGINT', stop);
  // Sent by Ganeti's log rotation.
  if (config.kind === 'ganeti') process.on('SIGHUP', () => reopenLog(logger));
}

/** @throws AppError NOT_ALLOWED */
function openLog(options: LogOptions): RootLogger {
  try {
    return createLogger(options);
  } catch (error) {
    throw explainRefusal(error);
  }
}

function reopenLog(logger: RootLogger): void {
  try {
    logger.reopen();
    logger.info('metad.log-reopened', {});
  } catch (error) {
    logger.error('metad.log-not-reopened', { error: messageOf(error) });
  }
}

async function start(config: MetadConfig, logger: Logger): Promise<AsyncDisposable> {
  const clock = systemClock;
  if (config.kind === 'node') return await startDaemon({ ...config, clock, logger });
  // Ganeti's scripts look for a process of this name.
  process.title = 'ganeti-metad';
  if (process.getuid?.() === 0) logger.warn('metad.runs-as-root', {});
  try {
    return await startGanetiDaemon({ ...config, clock, logger });
  } catch (error) {
    throw explainRefusal(error);
  }
}

/** Turns a refusal of the system into an AppError. Returns other errors as they are. */
function explainRefusal(error: unknown): unknown {
  const systemCode = systemCodeOf(error);
  if (systemCode !== 'EACCES' && systemCode !== 'EPERM') return error;
  return new AppError('NOT_ALLOWED', messageOf(error), {
    hint: 'Run it as root or as the user gnt-metad of Ganeti, or give --ganeti-socket, --ganeti-pid-file and --log-file.',
    cause: error,
  });
}

main().catch((error: unknown) => {
  const code = isAppError(error) ? error.code : 'INTERNAL';
  process.stderr.write(`error[${code}]: ${messageOf(error)}\n`);
  if (isAppError(error) && error.hint !== undefined) process.stderr.write(`hint: ${error.hint}\n`);
  // Open sockets would keep the process alive.
  process.exit(errorCodes[code]);
});
