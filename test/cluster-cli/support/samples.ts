import { DEFAULT_AUTOSTART } from '#shared/contract/autostart.ts';
import type { ClusterInfo, NodeInfo, OsInfo } from '#shared/contract/api.ts';
import type { InstanceInfo } from '#shared/contract/instance.ts';
import { NOW_MS } from '../../lab/sample-job.ts';

export function sampleInstance(fields: Partial<InstanceInfo> = {}): InstanceInfo {
  return {
    schema: 1,
    name: 'web1.example.com',
    uuid: '5f8d1c2e-0b6a-4c3d-9e7f-1a2b3c4d5e6f',
    instanceId: '0a1b2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d',
    primaryNode: 'node1',
    osType: 'debian+bookworm',
    osImage: null,
    osImageChecksum: null,
    osImageGrow: true,
    osImageFormat: null,
    personalizationPackage: null,
    personalizationChecksum: null,
    safeInstall: true,
    installParameters: {},
    installTimeoutS: null,
    mediumSuccess: 'report',
    appliance: null,
    applianceInForce: { name: 'mini', source: 'os debian' },
    hookNames: [],
    osParameters: { color: 'blue' },
    osParametersPrivate: { license: '<redacted>' },
    osParametersEffective: {
      color: { value: 'blue', visibility: 'public', source: 'instance' },
      license: { value: '<redacted>', visibility: 'private', source: 'instance' },
    },
    secretNames: ['password'],
    packageNeedsPassword: false,
    communication: true,
    channel: {
      ip: '169.254.1.2',
      mac: '52:54:00:11:22:33',
      uuid: '9e0f1a2b-3c4d-4e5f-8a6b-8c7d0a1b2c3d',
    },
    sshKeys: [],
    metadata: {},
    tags: ['db', 'prod'],
    seedDisk: true,
    dialects: ['ganeti', 'ec2', 'openstack', 'nocloud'],
    metadataToken: 'optional',
    diskTemplate: 'file',
    disks: [
      { uuid: 'aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee', name: 'root', sizeBytes: 10 * 2 ** 30 },
    ],
    nics: [],
    beparams: { memoryMiB: 1024, vcpus: 2 },
    hvparams: {},
    adminState: 'up',
    installState: 'installed',
    install: {
      jobId: 7,
      state: 'success',
      startedAtMs: NOW_MS,
      endedAtMs: NOW_MS + 61_000,
      stage: null,
      error: null,
      stages: [{ stage: 'image', durationMs: 12_345, summary: '512 MiB' }],
      logFile: '/var/log/gnt/install.log',
    },
    guestReport: null,
    partsOfRun: null,
    ssh: { user: null, hostKeys: [], saidHostKeys: [] },
    autostart: DEFAULT_AUTOSTART,
    beforeReinstall: null,
    createdAtMs: NOW_MS,
    modifiedAtMs: NOW_MS,
    serialNo: 3,
    hasUserData: true,
    hasVendorData: false,
    hasNetworkConfig: false,
    status: 'running',
    running: {
      pid: 4242,
      accelerator: 'tcg',
      startedAtMs: NOW_MS,
      tap: 'gnt.com.0',
      readyAtMs: NOW_MS + 30_000,
    },
    boot: null,
    cloudInit: { datasource: 'NoCloud', reason: 'it finds the seed disk' },
    explanation: 'it runs, and its guest is up',
    ...fields,
  };
}

export function sampleOs(fields: Partial<OsInfo> = {}): OsInfo {
  return {
    name: 'debian',
    path: '/srv/ganeti/os/debian',
    valid: true,
    problem: null,
    apiVersions: [20],
    variants: ['bookworm', 'trixie'],
    parameters: [{ name: 'mirror', description: 'where packages come from' }],
    hostScripts: ['create'],
    applianceScripts: [],
    trusted: false,
    trust: { state: 'untrusted', digest: null, trustedAtMs: null },
    variantSettings: {},
    hidden: false,
    blacklisted: false,
    safeInstall: 'optional',
    defaults: { mirror: { value: 'http://deb.example.com', visibility: 'public' } },
    ...fields,
  };
}

export function sampleNode(): NodeInfo {
  return {
    name: 'node1',
    version: '0.1.0',
    root: '/',
    pid: 100,
    startedAtMs: NOW_MS,
    metad: { pid: 101, restarts: 0 },
    networkNamespace: 'gnt-com',
    cpus: 4,
    memoryMiB: 8192,
    memoryFreeMiB: 4096,
    diskFreeBytes: 100 * 2 ** 30,
    instances: 1,
    instancesRunning: 1,
    removedAtMs: null,
    orphans: [],
    appliance: { state: 'intact', detail: 'kernel 6.1.0' },
  };
}

export function sampleCluster(): ClusterInfo {
  return {
    schema: 1,
    name: 'node1',
    uuid: '11111111-2222-4333-8444-555555555555',
    createdAtMs: NOW_MS,
    installTimeoutS: 7200,
    hostScripts: true,
    exposeServices: { apt: { port: 3142, host: '127.0.0.1', hostPort: 3142 } },
    store: 'sqlite /var/lib/gnt/store.sqlite',
    nodes: ['node1'],
    instances: 1,
  };
}
