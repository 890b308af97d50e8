import { Command, CommanderError } from 'commander';
import { systemClock } from '#shared/clock/clock.ts';
import { AppError, isAppError, messageOf } from '#shared/errors/app-error.ts';
import { errorCodes } from '#shared/errors/codes.ts';
import { createLogger } from '#shared/log/log.ts';
import { readVersion } from '#shared/paths/read-version.ts';
import { forbidCores } from '#shared/sys/forbid-cores.ts';
import { releaseMemoryWhenSettled } from '#shared/sys/release-memory.ts';
import { claimRoot } from '#shared/sys/claim-root.ts';
import { parseConfig, type NodedConfig, type NodedOptions } from './config.ts';
import { DEFAULT_FIRST_MACHINE_UID } from './host/machine-users.ts';
import { addRapiOptions } from './rapi/rapi-settings.ts';
import { requireTrustedRoot } from './trust-root.ts';
import { startNode } from './start-node.ts';
import { startPatiently } from './start-patiently.ts';
import { tellReady } from './systemd/tell-ready.ts';

async function main(): Promise<number> {
  const program = new Command('gnt-noded')
    .description(
      'Node daemon: owns instances, disks, networks and the metadata daemon of this host.',
    )
    .option('--node <name>', 'name of this node (default: host name)')
    .option('--os-search-path <dirs>', 'folders with OS definitions, separated by colons')
    .option('--image-cache-gib <size>', 'largest size of the image cache', '20')
    .option(
      '--max-installs <n>',
      'installations at the same time, the others wait (default: processors, at least 2)',
    )
    .option(
      '--max-starts <n>',
      'instances started at the same time after a reboot of the host',
      '2',
    )
    .option('--install-reserve-mib <mib>', 'memory that installations leave to others', '256')
    .option(
      '--appliance-boot-timeout <seconds>',
      'for an appliance to report; one that does not is booted once more',
      '120',
    )
    .option(
      '--shared-lease <seconds>',
      'so long after its last word to the store others may take the instances of this node whose disks are shared; they are paused after two thirds of it, and end after twice as long',
      '60',
    )
    .option(
      '--machine-uids <first>',
      'first of 4194304 numbers of users and groups that nobody else has; each machine runs as one of them',
      String(DEFAULT_FIRST_MACHINE_UID),
    )
    .option(
      '--user-nics-reach-host',
      "let guests with a NIC of mode=user reach this host's addresses and its cloud's metadata service",
    )
    .option('--log-level <level>', 'debug, info, warn or error', 'info')
    .version(readVersion())
    .exitOverride()
    .configureOutput({ outputError: () => undefined })
    .addHelpText(
      'after',
      '\nGNT_ROOT (default /) prefixes every path; only root may write it and what it is below. Logs are JSON lines on stderr. Ends cleanly on SIGTERM.',
    );
  addRapiOptions(program);
  let config: NodedConfig;
  try {
    program.parse();
    config = parseConfig(program.opts<NodedOptions>(), process.env['GNT_ROOT'] || '/');
    if (process.arch !== 'x64') {
      const message = `gnt-noded runs on x86-64 alone, as its machines and its appliance do: this host is ${process.arch}`;
      throw new AppError('HOST_PREREQUISITE', message, {
        hint: 'gnt-metad --ganeti runs on other hosts too, without gnt-noded',
      });
    }
    if (process.getuid?.() !== 0) {
      throw new AppError('NOT_ROOT', 'gnt-noded must run as root', {
        hint: 'it drops what it can for its children',
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
    // Held until this process ends, however it ends.
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

// What still holds the loop when everything was stopped, must not hold the process.
process.exit(await main());
