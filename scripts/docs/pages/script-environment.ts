import {
  planOspVariables,
  planScriptEnvironment,
  type ScriptEnvironmentInput,
  type ScriptOperation,
} from '../../../noded/provision/os/script-environment.ts';
import { SERVICE_URL } from '#shared/contract/service-address.ts';
import { heading, paragraph, terms } from '../../../cluster-cli/manual/page.ts';
import { documented, type DocumentedPage } from '../documented-page.ts';

/** Content of each variable. A variable of the code without an entry fails the generator. */
const VARIABLES: Readonly<Record<string, string>> = {
  PATH: 'Search path of programs.',
  OS_API_VERSION: 'Newest API version that the OS definition and the node support.',
  OS_NAME: 'Name of the OS definition.',
  OS_VARIANT: 'Variant, or empty.',
  DEBUG_LEVEL: 'Always 0.',
  INSTANCE_NAME: 'Name of the instance.',
  INSTANCE_OS: 'OS of the instance, as `NAME+VARIANT`.',
  INSTANCE_UUID: 'UUID of the instance.',
  INSTANCE_CTIME: 'Creation time in seconds since the epoch.',
  INSTANCE_MTIME: 'Time of the last change in seconds since the epoch.',
  INSTANCE_PRIMARY_NODE: 'Node of the instance.',
  INSTANCE_SECONDARY_NODES: 'Always empty.',
  HYPERVISOR: 'Always `kvm`.',
  DISK_COUNT: 'Number of disks.',
  NIC_COUNT: 'Number of NICs.',
  DISK_N_PATH: 'Path of disk N as the script sees it.',
  DISK_N_ACCESS: '`rw` or `ro`.',
  DISK_N_SIZE: 'Size of disk N in MiB.',
  DISK_N_UUID: 'UUID of disk N.',
  DISK_N_NAME: 'Name of disk N, if it has one.',
  DISK_N_FRONTEND_TYPE: 'Always `paravirtual`.',
  DISK_N_BACKEND_TYPE: '`block` or `file:DRIVER`.',
  NIC_N_MAC: 'MAC address of NIC N.',
  NIC_N_UUID: 'UUID of NIC N.',
  NIC_N_NAME: 'Name of NIC N, if it has one.',
  NIC_N_IP: 'IP address of NIC N, if it is known.',
  NIC_N_MODE: 'Mode of NIC N: `bridged` or `user`.',
  NIC_N_BRIDGE: 'Bridge of NIC N, for the mode `bridged`.',
  NIC_N_LINK: 'Link of NIC N.',
  NIC_N_FRONTEND_TYPE: 'Always `paravirtual`.',
  INSTANCE_BE_memory: 'Memory of the instance in MiB. Other backend parameters likewise.',
  INSTANCE_HV_accel: 'Hypervisor parameter `accel`. Other hypervisor parameters likewise.',
  OS_SCRIPT: 'Name of the script. Set in the appliance only.',
  INSTANCE_REINSTALL: '1 in a reinstallation. `create` and hooks only.',
  OLD_INSTANCE_NAME: 'Former name of the instance. `rename` only.',
  IMPORT_INDEX: 'Number of the disk to write. `import` only.',
  IMPORT_DEVICE: 'Path of the disk to write. `import` only.',
  IMPORT_DISK_PATH: 'The same as IMPORT_DEVICE.',
  EXPORT_INDEX: 'Number of the disk to dump. `export` only.',
  EXPORT_DEVICE: 'Path of the disk to dump. `export` only.',
  EXPORT_DISK_PATH: 'The same as EXPORT_DEVICE.',
  OSP_NAME: 'Value of the OS parameter `name`, of any visibility. `-` and `/` become `_`.',
};

const OPERATIONS: readonly ScriptOperation[] = [
  { script: 'create', reinstall: true },
  { script: 'rename', oldName: 'old' },
  { script: 'import', diskIndex: 0 },
  { script: 'export', diskIndex: 0 },
];

/** Lists every variable that a script can get, with N for numbers. */
export function listVariables(): readonly string[] {
  const names = OPERATIONS.flatMap((operation) =>
    Object.keys({
      ...planScriptEnvironment(inputOf(operation)),
      ...planOspVariables({ name: '' }),
    }),
  );
  return [...new Set(names.map((name) => name.replace(/^(DISK|NIC)_\d+_/, '$1_N_')))];
}

function inputOf(operation: ScriptOperation): ScriptEnvironmentInput {
  return {
    instance: {
      name: 'web1.example.com',
      uuid: '-',
      createdAtMs: 0,
      modifiedAtMs: 0,
      primaryNode: 'node1.example.com',
      osType: 'debian',
      hypervisor: 'kvm',
      beparams: { memory: 512 },
      hvparams: { accel: 'auto' },
    },
    os: { name: 'debian', apiVersion: 20, variants: ['default'], variant: null },
    disks: [
      { path: '/dev/vda', sizeBytes: 1, uuid: '-', name: 'root', access: 'rw', backend: 'block' },
    ],
    nics: [{ mac: '-', uuid: '-', name: 'lan', ip: '-', mode: 'bridged', link: 'br0' }],
    debugLevel: 0,
    runsIn: 'appliance',
    operation,
  };
}

/** @throws Error naming the variable */
function describeVariable(name: string): string {
  const text = VARIABLES[name];
  if (text === undefined) throw new Error(`scripts/docs/pages/script-environment.ts lacks ${name}`);
  return text;
}

export function scriptEnvironmentPage(): DocumentedPage {
  return documented('script-environment.md', 'Environment of scripts', {
    name: 'gnt-script-environment',
    section: 7,
    purpose: 'environment variables of OS scripts and hooks',
    blocks: [
      heading('Description'),
      paragraph(
        'Scripts of OS definitions and commands of hooks get these variables and no others. The names ' +
          'are those of Ganeti. An empty value is left out, except for OS_VARIANT. ' +
          '`verify` gets PATH, the variables that begin with OS_, DEBUG_LEVEL and the OS parameters.',
      ),
      heading('Variables'),
      terms(listVariables().map((name) => [name, describeVariable(name)])),
      heading('Variables of the appliance'),
      terms([
        [
          'GNT_MIRROR_NAME',
          `URL of the package mirror NAME: ${SERVICE_URL}/ganeti/latest/mirror/NAME.`,
        ],
        [
          'GNT_TARGET',
          'Folder of the mounted instance. Hooks that run outside the instance get it.',
        ],
      ]),
    ],
    seeAlso: ['gnt-os-interface(7)', 'gnt-hooks(5)'],
  });
}
