import { Command } from 'commander';
import { DEFAULT_FIRST_MACHINE_UID } from '../host/machine-users.ts';
import { addDataOptions } from '../cluster/peers/data-settings.ts';
import { addIdentityOptions } from '../api/identity/identity-settings.ts';
import { addWebOptions } from '../api/web/web-settings.ts';
import { addRapiOptions } from '../api/rapi/rapi-settings.ts';

/** Creates the option parser of gnt-noded. `parseConfig` checks the values. */
export function createNodedProgram(version: string): Command {
  const program = new Command('gnt-noded')
    .description(
      'Node daemon: manages the instances, disks and networks of this node, and runs gnt-metad.',
    )
    .option('--node <name>', 'name of this node (default: host name)')
    .option('--os-search-path <dirs>', 'folders with OS definitions, separated by colons')
    .option('--image-cache-gib <size>', 'maximum size of the image cache, in GiB', '20')
    .option(
      '--max-installs <n>',
      'maximum of parallel installations (default: number of processors, at least 2)',
    )
    .option('--max-starts <n>', 'instances started in parallel after a reboot of the host', '2')
    .option(
      '--install-reserve-mib <mib>',
      'memory that installations must leave free, in MiB',
      '256',
    )
    .option(
      '--appliance-boot-timeout <seconds>',
      'time for an appliance to report; afterwards it is booted once more',
      '120',
    )
    .option(
      '--shared-lease <seconds>',
      'other nodes may take over shared-disk instances after this time without contact',
      '60',
    )
    .option(
      '--machine-uids <first>',
      'first of 4194304 reserved user and group ids; each QEMU process runs as one of them',
      String(DEFAULT_FIRST_MACHINE_UID),
    )
    .option(
      '--user-nics-reach-host',
      'let NICs with mode=user reach this host and the metadata service of its cloud',
    )
    .option('--log-level <level>', 'level of the log: debug, info, warn or error', 'info')
    .version(version, '-V, --version', 'show the version')
    .helpOption('-h, --help', 'show this help')
    .addHelpText(
      'after',
      '\nGNT_ROOT (default /) is the prefix of every path. Only root may have write\naccess to it and to its parent folders. The log goes to stderr as JSON lines.\nSIGTERM stops the daemon; instances continue to run.',
    );
  addDataOptions(program);
  addRapiOptions(program);
  addWebOptions(program);
  addIdentityOptions(program);
  return program;
}
