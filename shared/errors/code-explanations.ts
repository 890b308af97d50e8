import type { ErrorCode } from './codes.ts';

/** Explanation of an error code in the reference. Programs do not load it. */
export interface CodeExplanation {
  readonly cause: string;
  readonly remedy: string;
}

export const codeExplanations: Readonly<Record<ErrorCode, CodeExplanation>> = {
  USAGE: {
    cause: 'The command line is malformed: an unknown command, option or field, or a bad value.',
    remedy: 'Run the command with `--help`.',
  },
  VALIDATION: {
    cause: 'A value has the wrong form, or two values contradict each other.',
    remedy: 'Correct the value that the message names.',
  },
  REQUEST_TOO_LARGE: {
    cause: 'A request to the node API or the remote API exceeds the size limit.',
    remedy: 'Send fewer or smaller documents at a time.',
  },
  NOT_ROOT: {
    cause: 'The program needs root privileges.',
    remedy: 'Run it as root.',
  },
  NOT_FOUND: {
    cause: 'An object other than an instance, a job or a node does not exist.',
    remedy: 'List the objects of that kind and correct the name.',
  },
  INSTANCE_NOT_FOUND: {
    cause: 'No instance has this name, or the metadata service does not serve it.',
    remedy: 'Run `gnt-instance list`. Commands that remove disks need the full name.',
  },
  INSTANCE_EXISTS: {
    cause: 'Another instance has this name.',
    remedy: 'Choose another name, or rename or remove the other instance.',
  },
  INSTANCE_STATE: {
    cause: 'The operation does not fit the state of the instance, for example it is not running.',
    remedy: 'Run `gnt-instance info NAME`, change the state, and repeat the command.',
  },
  INSTANCE_BUSY: {
    cause: 'Reserved. No operation reports this code.',
    remedy: 'None.',
  },
  JOB_NOT_FOUND: {
    cause: 'No job has this number, or its record has expired.',
    remedy: 'Run `gnt-job list`.',
  },
  NODE_NOT_FOUND: {
    cause: 'No node of the cluster has this name.',
    remedy: 'Run `gnt-node list`.',
  },
  NODE_REMOVED: {
    cause: 'This node was removed from its cluster.',
    remedy: 'Restart gnt-noded and follow the hint in its log.',
  },
  NODE_OFFLINE: {
    cause: 'The node is marked offline.',
    remedy: 'Run `gnt-node modify --offline no NODE` when the node is back.',
  },
  NODE_DRAINED: {
    cause: 'The node is drained and accepts no new instances.',
    remedy: 'Choose another node, or run `gnt-node modify --drained no NODE`.',
  },
  NO_ROOM: {
    cause: 'No node has enough memory, processors or disk space for the instance.',
    remedy: 'Give the instance less, free resources, or name a node with `-n`.',
  },
  TOKEN_INVALID: {
    cause: 'The join token is incomplete, altered, or belongs to another cluster.',
    remedy: 'Give the whole token, or create a new one with `gnt-cluster join-token`.',
  },
  TOKEN_EXPIRED: {
    cause: 'The lifetime of the join token is over.',
    remedy: 'Create a new one with `gnt-cluster join-token`.',
  },
  TOKEN_USED: {
    cause: 'The join token was used before.',
    remedy: 'Create a new one. If the use was not yours, run `gnt-cluster renew-crypto`.',
  },
  CLOCK_SKEW: {
    cause: 'The clocks of this host and of the store differ too much.',
    remedy: 'Synchronize the clocks, for example with `timedatectl set-ntp true`.',
  },
  EXPORT_NOT_FOUND: {
    cause: 'The node has no export with this name or path.',
    remedy: 'Run `gnt-backup list`, or give the absolute path of the export.',
  },
  EXPORT_INVALID: {
    cause: 'The configuration file or a disk dump of the export is damaged.',
    remedy: 'Use another export.',
  },
  OS_NOT_FOUND: {
    cause: 'The node has no OS definition with this name.',
    remedy: 'Run `gnt-os diagnose`.',
  },
  OS_INVALID: {
    cause: 'The OS definition lacks a script or breaks a rule of the OS interface.',
    remedy: 'Run `gnt-os info NAME` and correct the definition.',
  },
  OS_VARIANT: {
    cause: 'The OS definition needs a variant, or does not have the variant that was given.',
    remedy: 'Run `gnt-os list` and give the name as `OS+VARIANT`.',
  },
  OS_PARAMETER: {
    cause: 'The OS definition does not know a parameter, or its `verify` script rejected a value.',
    remedy: 'Run `gnt-os info NAME` and correct the parameter.',
  },
  OS_NOT_TRUSTED: {
    cause:
      'A script would run on the host, and the current content of the definition is not trusted.',
    remedy: 'Review the definition, then run `gnt-os trust NAME`.',
  },
  OS_BLACKLISTED: {
    cause: 'The OS definition is blacklisted.',
    remedy: 'Choose another one, or run `gnt-os modify --blacklisted no NAME`.',
  },
  DUPLICATE_OS_PARAMETER: {
    cause: 'An OS parameter was given with two values or with two visibilities.',
    remedy: 'Give each parameter once.',
  },
  SECRETS_NEEDED: {
    cause: 'The operation needs secret values, which are never stored.',
    remedy: 'Give them again, for example with `--os-parameters-secret NAME=@FILE`.',
  },
  IMAGE_NOT_FOUND: {
    cause: 'No catalogue has an image of this name, or the file does not exist on the node.',
    remedy: 'Run `gnt-image list`, or correct the path.',
  },
  IMAGE_UNREADABLE: {
    cause: 'The image file cannot be read, or it changed during the operation.',
    remedy: 'Check the file on the node and repeat the command.',
  },
  IMAGE_SOURCE: {
    cause: 'The image source is not a usable name, path, URL or checksum.',
    remedy: 'Correct the source. A relative path starts with `./`.',
  },
  CATALOGUE_INVALID: {
    cause: 'An image catalogue or a published checksum list cannot be used.',
    remedy: 'Correct the catalogue, or run `gnt-image update`.',
  },
  PACKAGE_SOURCE: {
    cause: 'The personalization package cannot be opened on the node.',
    remedy: 'Correct the path or URL.',
  },
  HOST_PREREQUISITE: {
    cause: 'The host lacks a program, a kernel feature, a volume group or another requirement.',
    remedy: 'Run `gnt-node doctor` and install or configure the missing part.',
  },
  NO_FREE_ADDRESS: {
    cause: 'The network has no free IPv4 address.',
    remedy: 'Remove unused instances, or add a larger network.',
  },
  DISK_SPACE: {
    cause: 'The node has too little free space for the operation. Nothing was changed.',
    remedy: 'Free space, or enlarge the file system or pool that the message names.',
  },
  DISK_IN_USE: {
    cause: 'A process holds a disk of the instance open.',
    remedy: 'Identify the process that the message names, and end it.',
  },
  STORE_VERSION: {
    cause: 'A newer release wrote the store.',
    remedy: 'Run the newer release.',
  },
  STORE_KEY: {
    cause: 'The cluster key is missing or does not open the records of the store.',
    remedy: 'Copy `cluster.key` from another node of the cluster.',
  },
  RECORD_UNREADABLE: {
    cause: 'A record of the store is damaged or has an unknown format.',
    remedy: 'Restore the store from a backup, or run the release that wrote the record.',
  },
  RECORD_REPLAYED: {
    cause: 'The store holds a record that is older than one this node has seen.',
    remedy: 'If you restored a backup, stop gnt-noded and run `gnt-cluster accept-records`.',
  },
  NOT_ALLOWED: {
    cause: 'The user of the remote API has no permission for this operation.',
    remedy: "Extend the user's options in the users file, or name the host in `--remote-hosts`.",
  },
  PATH_NOT_ALLOWED: {
    cause: 'A user of the remote API named a file outside the allowed folders.',
    remedy: 'Name the folder with `gnt-cluster modify --remote-folders DIR`.',
  },
  LOGIN_REQUIRED: {
    cause: 'A request to the web page has no session, or its session has ended.',
    remedy: 'Log in again, or open the newest address that `gnt-cluster web` printed.',
  },
  LOGIN_FAILED: {
    cause: 'The user name or password is wrong, or the address with a token was used already.',
    remedy: 'Try again, or open the newest address that `gnt-cluster web` printed.',
  },
  TOO_MANY_LOGINS: {
    cause: 'A network sent too many wrong passwords, or too many users are logged in.',
    remedy: 'Wait a minute.',
  },
  NOT_FOR_PEERS: {
    cause: 'Another node asked for a route or an operation that nodes do not ask each other for.',
    remedy: 'Run the command on the node itself. Nodes of one cluster need the same release.',
  },
  QUOTA_EXCEEDED: {
    cause: 'The instances of the user would exceed a quota of the users file.',
    remedy: 'Remove or shrink instances of the user, or raise `max-…` in the users file.',
  },
  TOO_MANY_JOBS: {
    cause: 'The user has too many unfinished jobs.',
    remedy: 'Wait until some of them have ended.',
  },
  CONFLICT: {
    cause: 'The request contradicts the current configuration, or another change came first.',
    remedy: 'Read the message, resolve the contradiction, and repeat the command.',
  },
  NOT_SUPPORTED: {
    cause: 'This product does not support the request in this configuration.',
    remedy: 'Leave out the option that the message names.',
  },
  FILE_UNREADABLE: {
    cause: 'A file that the command line names cannot be read.',
    remedy: 'Check the path and the permissions.',
  },
  RUN_LIST_INVALID: {
    cause: 'A run list breaks the rules for its folder, scripts or inputs.',
    remedy: 'Correct the run list that the message names.',
  },
  INPUT_MISSING: {
    cause: 'A script of a run list has an input without a value.',
    remedy: 'Give the value that the message names.',
  },
  BOOTENV_NOT_FOUND: {
    cause: 'No boot environment, template or param has this name.',
    remedy: 'Run `gnt-bootenv list`.',
  },
  BOOTENV_INVALID: {
    cause: 'A boot environment document or a parameter has the wrong form.',
    remedy: 'Correct the field that the message names.',
  },
  BOOTENV_NO_SOURCE: {
    cause: 'The boot environment has no archive or repository to boot from.',
    remedy: 'Run `gnt-bootenv add-iso NAME FILE`, or set the param `package-repositories`.',
  },
  BOOTENV_RENDER: {
    cause: 'A template of the boot environment cannot be rendered.',
    remedy: 'Run `gnt-bootenv render BOOTENV INSTANCE` and correct the template.',
  },
  INTERNAL: {
    cause: 'A defect of the product, or programs of different versions.',
    remedy: 'Restart gnt-noded after an upgrade. Otherwise report the error with the log.',
  },
  IMAGE_CHECKSUM_MISMATCH: {
    cause: 'The image does not have the expected checksum.',
    remedy: 'Compare it with the checksum that the publisher gives.',
  },
  IMAGE_TOO_LARGE: {
    cause: 'The image does not fit on the first disk.',
    remedy: 'Give a larger disk with `-s SIZE`, or run `gnt-instance grow-disk`.',
  },
  IMAGE_INVALID: {
    cause: 'The image is damaged, or its format is not supported or not as declared.',
    remedy: 'Convert the image with `qemu-img convert`, or correct `--image-format`.',
  },
  IMAGE_BACKING_FILE: {
    cause: 'The image refers to another file.',
    remedy: 'Flatten it with `qemu-img convert -O qcow2 OLD NEW`.',
  },
  IMAGE_DUMP: {
    cause: 'The image could not be written to the disk, or the disk differs from it afterwards.',
    remedy: 'Check the storage of the node and repeat the installation.',
  },
  DOWNLOAD_FAILED: {
    cause: 'A server or file cannot be reached, or refuses the download.',
    remedy: 'Check the URL, the login in `etc/gnt/netrc`, and the server.',
  },
  DOWNLOAD_TRUNCATED: {
    cause: 'The download ended before the announced size.',
    remedy: 'Repeat it, or check the server.',
  },
  SCRIPT_FAILED: {
    cause: 'A script of an OS definition or of a run list ended with an error.',
    remedy: 'Read its output with `gnt-instance log NAME` or `gnt-instance audit NAME`.',
  },
  PACKAGE_INVALID: {
    cause: 'The personalization package is not a usable archive.',
    remedy: 'Create it with `tar -C DIR -czf FILE .`.',
  },
  PACKAGE_DOWNLOAD: {
    cause: 'The personalization package could not be fetched.',
    remedy: 'Check the URL and its login.',
  },
  PACKAGE_CHECKSUM_MISMATCH: {
    cause: 'The personalization package does not have the expected checksum.',
    remedy: 'Compare it with the published checksum and give `--personalization-checksum`.',
  },
  SIGNATURE_INVALID: {
    cause: 'The signature of a checksum list does not verify, or its keyring cannot be read.',
    remedy: 'Install the keyring, or do not use the image.',
  },
  PACKAGE_UNSAFE: {
    cause:
      'An entry of the personalization package is refused, for example a path outside the root.',
    remedy: 'Remove the entry that the message names from the archive.',
  },
  NOTHING_TO_MOUNT: {
    cause: 'The installed disks have no root file system that the appliance can mount.',
    remedy: 'Use an image with a root file system, or install without package and hooks.',
  },
  HOOK_FAILED: {
    cause: 'A step of a hook document failed.',
    remedy: 'Read the message in `gnt-instance log NAME` and correct the hook.',
  },
  DISK_FULL: {
    cause: 'A file system of the node or of the instance has no free space.',
    remedy: 'Free space or give a larger disk, then repeat the operation.',
  },
  MIGRATION_FAILED: {
    cause: 'A migration or move failed. A guest continues on its former node if it still runs.',
    remedy: 'Run `gnt-instance info NAME`, remove the cause, and repeat the migration.',
  },
  DISK_MISSING: {
    cause: 'A disk of the instance is missing.',
    remedy: 'Compare `gnt-instance info NAME` with the storage of the node.',
  },
  APPLIANCE_MISSING: {
    cause: 'The node has no appliance of this name, or none was built.',
    remedy: 'Run `gnt-appliance build`, or `gnt-appliance list`.',
  },
  APPLIANCE_CORRUPT: {
    cause: 'A file of the appliance differs from its manifest.',
    remedy: 'Run `gnt-appliance build`, or import the appliance again.',
  },
  APPLIANCE_BUILD: {
    cause: 'The appliance could not be built.',
    remedy: 'Check the Debian mirror and the free disk space, and run `gnt-appliance build`.',
  },
  APPLIANCE_NO_RESULT: {
    cause: 'The appliance or the installation medium ended without a result.',
    remedy: 'Read `gnt-instance log NAME`. For a medium, see `--medium-success`.',
  },
  APPLIANCE_CRASHED: {
    cause: 'The appliance ended unexpectedly.',
    remedy: 'Read the console output in `gnt-instance log NAME`, then reinstall.',
  },
  INSTALL_TIMEOUT: {
    cause: 'The installation exceeded its time limit.',
    remedy: 'Raise the limit with `--install-timeout SECONDS`; 0 removes it.',
  },
  QEMU_FAILED: {
    cause: 'QEMU did not start.',
    remedy: 'Read the message of QEMU, and run `gnt-node doctor`.',
  },
  QMP: {
    cause: 'QEMU did not carry out a command, or its control connection closed.',
    remedy: 'Run `gnt-instance info NAME` and repeat the operation.',
  },
  NETWORK_SETUP: {
    cause: 'A network device, address or packet filter rule could not be set up.',
    remedy: 'Run `gnt-node doctor`.',
  },
  COMMAND_FAILED: {
    cause: 'An external program failed, or output could not be written.',
    remedy: 'Read the message of the program.',
  },
  COMMAND_ABSENT: {
    cause: 'This command of Ganeti has no counterpart in gnt.',
    remedy: 'Use the alternative that the message names.',
  },
  COMMAND_TIMEOUT: {
    cause: 'An external program exceeded its time limit.',
    remedy: 'Check the load and the storage of the node, and repeat the operation.',
  },
  STORE_UNAVAILABLE: {
    cause: 'The store does not answer, or too few replicas confirmed a write.',
    remedy: 'Check Redis and the network, and repeat the operation.',
  },
  NODE_UNREACHABLE: {
    cause: 'Another node does not answer, or the connection to it broke.',
    remedy: 'Check gnt-noded on that node, then repeat the operation.',
  },
  METAD_UNAVAILABLE: {
    cause: 'The metadata service does not answer.',
    remedy: 'Read the log of gnt-noded, which restarts gnt-metad.',
  },
  METAD_REFUSED: {
    cause: 'The metadata service rejected a view or a request.',
    remedy: 'Correct the value that the message names. Rebuild an appliance of another version.',
  },
  CHANNEL_FULL: {
    cause: 'The queue to the guest is full.',
    remedy: 'Wait until the guest reads, or leave out `--no-wait`.',
  },
  CHANNEL_CLOSED: {
    cause: 'The channel of the instance closed, or nothing arrived in time.',
    remedy: 'Check that the instance runs.',
  },
  GUEST_UNREACHABLE: {
    cause: 'The guest does not answer on that port of its channel address.',
    remedy: 'Check that the service runs in the guest and listens on the channel address.',
  },
  GUEST_NOT_READY: {
    cause: 'The guest did not report that it is ready.',
    remedy: 'Look at it with `gnt-instance console NAME`.',
  },
  GUEST_BOOT_FAILED: {
    cause: 'cloud-init reported errors.',
    remedy: 'Run `gnt-instance info NAME`, or `cloud-init status --long` in the guest.',
  },
  SSH_HOST_KEYS: {
    cause: 'The SSH host keys of the guest are not known.',
    remedy: 'Wait for the end of the boot. The guest reports its keys through cloud-init.',
  },
  SCRIPT_STRANDED: {
    cause: 'A boot script of the run lists failed, and the guest is `stranded`.',
    remedy: 'Run `gnt-instance audit NAME`.',
  },
  DECOMMISSION_TIMEOUT: {
    cause:
      'The decommission scripts exceeded their time limit and were ended. The instance went down.',
    remedy: 'Raise `-H decommission_timeout`.',
  },
  GUEST_AGENT_SILENT: {
    cause: 'The guest does not fetch scripts of its run lists.',
    remedy: 'Enable the run list agent in the guest.',
  },
  SECRET_LOST: {
    cause: 'A secret value is no longer in memory, for example after a restart of the node.',
    remedy: 'Reinstall the instance and give the secret again.',
  },
  JOB_CANCELED: {
    cause: 'The job was cancelled.',
    remedy: 'Submit the operation again if it is still wanted.',
  },
  JOB_INTERRUPTED: {
    cause: 'gnt-noded stopped while the job ran.',
    remedy: 'Submit the operation again.',
  },
  NOT_CONFIRMED: {
    cause: 'The question was not answered with yes. Nothing was changed.',
    remedy: 'Repeat the command and confirm, or give `--force`.',
  },
  NODED_UNREACHABLE: {
    cause: 'The command cannot connect to gnt-noded.',
    remedy: 'Start gnt-noded, and run the command as root.',
  },
  INTERRUPTED: {
    cause: 'The command was interrupted by a signal. A submitted job continues.',
    remedy: 'Run `gnt-job list` to find the job.',
  },
};
