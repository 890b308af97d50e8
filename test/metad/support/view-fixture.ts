import type { InstanceView } from '#shared/contract/view.ts';

/** Returns a view with one user NIC and the channel's, and a parameter of each visibility. */
export function exampleView(overrides: Partial<InstanceView> = {}): InstanceView {
  return {
    version: 1,
    revision: 1,
    name: 'web1.example.com',
    uuid: '6aa7b544-1f3d-49e9-b2b7-73836039b5cf',
    instanceId: 'c5fe7f7b-3bf8-491f-9c11-e6a91766c40f',
    mode: 'run',
    os: 'debian+default',
    hypervisor: 'kvm',
    beparams: { memory: 512, vcpus: 2 },
    nics: [
      { mac: 'aa:00:00:85:84:fd', communication: false, mode: 'bridged', link: 'br0' },
      { mac: '52:54:00:e1:a3:45', communication: true, mode: 'routed', link: 'gnt-com' },
    ],
    disks: [{ sizeBytes: 1_073_741_824, uuid: '90dad9f8-b5c9-475b-b4de-820eade222d4' }],
    tags: ['web', 'env:prod'],
    metadata: { role: 'frontend' },
    primaryNode: 'node1.example.com',
    clusterName: 'cluster.example.com',
    channel: { device: 'gnt.com.0', mac: '52:54:00:e1:a3:45', ip: '169.254.0.1', hopLimit: 1 },
    dialects: ['ganeti', 'ec2', 'openstack', 'nocloud'],
    metadataToken: 'optional',
    osParameters: {
      dhcp: { value: 'yes', visibility: 'public' },
      hostkey: { value: 'KEY123', visibility: 'private' },
      rootpw: { value: 'S3CRET', visibility: 'secret' },
    },
    userData: Buffer.from('#cloud-config\nlocale: false\n').toString('base64'),
    vendorData: null,
    networkConfig: null,
    sshKeys: ['ssh-ed25519 AAAAC3Nza operator@example.com'],
    limits: { requestsPerSecond: 1000, burst: 2000, connections: 64 },
    services: [],
    install: null,
    createdAtMs: 1_795_236_815_199,
    ...overrides,
  };
}

/** Returns the same instance during an installation with all optional parts. */
export function installingView(overrides: Partial<InstanceView> = {}): InstanceView {
  return exampleView({
    mode: 'install',
    install: {
      plan: {
        version: 1,
        installId: '0f312383-0843-4d64-b900-bcda02f9f77b',
        instance: 'web1.example.com',
        disks: [{ serial: 'disk0', sizeBytes: 1_073_741_824 }],
        image: { serial: 'image', fileSizeBytes: 100_000, grow: true },
        scripts: { script: 'create', path: 'untrusted/create', environment: { OS_NAME: 'debian' } },
        personalization: { format: 'tar.gz' },
      },
      scripts: { create: Buffer.from('#!/bin/sh\nexit 0\n').toString('base64') },
      definitionTar: Buffer.alloc(1024).toString('base64'),
      imageSizeBytes: 100_000,
      hasPackage: true,
      hooks: [
        { source: 'cluster', name: '10-all.yaml', content: Buffer.from('a: 1').toString('base64') },
        { source: 'instance', name: 'own.yaml', content: Buffer.from('b: 1').toString('base64') },
      ],
    },
    ...overrides,
  });
}

/** Returns the same instance with a boot environment. */
export function bootingView(overrides: Partial<InstanceView> = {}): InstanceView {
  const { channel, uuid } = exampleView();
  const file = (
    text: string,
    isSecretBearing: boolean,
  ): { content: string; isSecretBearing: boolean } => ({
    content: Buffer.from(text).toString('base64'),
    isSecretBearing,
  });
  return exampleView({
    boot: {
      bootEnv: 'debian-12-install',
      script: `${channel.mac}.ipxe`,
      loader: 'EFI/boot/bootx64.efi',
      files: {
        [`${channel.mac}.ipxe`]: file('#!ipxe\nexit\n', false),
        [`machines/${uuid}/preseed.cfg`]: file('S3CRET\n', true),
      },
      hasTree: true,
    },
    ...overrides,
  });
}
