import { createHash, randomUUID } from 'node:crypto';
import { mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '#shared/clock/clock.ts';
import type { ViewBoot } from '#shared/contract/boot-view.ts';
import type { InstanceView } from '#shared/contract/view.ts';
import { silentLogger } from '#shared/log/log.ts';
import type { BootTree } from '../../noded/content/downloads/boot-tree.ts';
import { createHypervisor } from '../../noded/vmm/hypervisor.ts';
import type { Machine, MachineNic, MachineSpec } from '../../noded/vmm/machine.ts';
import {
  startContentServer,
  type ContentServer,
} from '../../noded/net/metad-link/content-server.ts';
import { createChannelNetwork } from '../../noded/net/channel/channel-network.ts';
import { ChannelLab, METAD_UID } from '../metad/support/channel-lab.ts';
import { exampleView } from '../metad/support/view-fixture.ts';
import { tinyHost } from '../noded/vmm/tiny-guest.ts';

const MACHINE_MEMORY_MIB = 640;

export interface NetbootGuest {
  readonly view: InstanceView;
  readonly nic: Extract<MachineNic, { kind: 'tap' }>;
}

/**
 * A node's parts for network boot: the real metad, content socket, TAPs with their firewall, and
 * QEMU. The test provides the rendered boot environment.
 */
export class NetbootLab implements AsyncDisposable {
  readonly channel: ChannelLab;
  readonly trees = new Map<string, BootTree>();
  readonly directory: string;
  readonly #network;
  readonly #hypervisor;
  readonly #machines: Machine[] = [];
  #content: ContentServer | undefined;
  #revision = 0;
  #guests = 0;

  private constructor(channel: ChannelLab, directory: string) {
    this.channel = channel;
    this.directory = directory;
    this.#network = createChannelNetwork({ namespace: channel.namespace, logger: silentLogger });
    this.#hypervisor = createHypervisor(tinyHost(join(directory, 'vm')));
  }

  static async create(): Promise<NetbootLab> {
    const channel = await ChannelLab.create();
    const directory = await mkdtemp(join(tmpdir(), 'gnt-netboot-'));
    const lab = new NetbootLab(channel, directory);
    try {
      await lab.#network.ensureNamespace();
      await lab.startContent();
    } catch (error) {
      await lab[Symbol.asyncDispose]();
      throw error;
    }
    return lab;
  }

  async startContent(): Promise<void> {
    this.#content = await serveBootTrees(this.channel, this.trees);
  }

  /** Cuts open transfers, as the end of the node daemon does. */
  async stopContent(): Promise<void> {
    await this.#content?.close();
    this.#content = undefined;
  }

  /** Adds a TAP for a QEMU process. */
  async addGuest(overrides: Partial<InstanceView> = {}): Promise<NetbootGuest> {
    const number = ++this.#guests;
    const mac = `52:54:00:e1:a3:${(0x40 + number).toString(16)}`;
    const ip = `169.254.0.${number}`;
    const { device, fd } = await this.#network.openTap({ mac, ip, boots: true });
    const view = exampleView({
      uuid: randomUUID(),
      instanceId: randomUUID(),
      name: `guest${number}.example.com`,
      nics: [{ mac, communication: true }],
      channel: { device, mac, ip, hopLimit: 1 },
      ...overrides,
    });
    return { view, nic: { kind: 'tap', fd, device, mac, channel: true } };
  }

  /** Lets guests reach another port of the metadata address. */
  async openPort(port: number): Promise<void> {
    await this.#network.setServicePorts({ tcp: [port], udp: [] });
  }

  /** Serves this view to the guest from now on. */
  async put(view: InstanceView): Promise<void> {
    const { status, body } = await this.channel.put({ ...view, revision: ++this.#revision });
    if (status !== 204) throw new Error(`metad refuses the view: ${body.toString()}`);
  }

  async start({ view, nic }: NetbootGuest, changes: Partial<MachineSpec> = {}): Promise<Machine> {
    const machine = await this.#hypervisor.start({
      uuid: view.uuid,
      name: view.name,
      smbios: { uuid: view.instanceId },
      memoryMiB: MACHINE_MEMORY_MIB,
      vcpus: 1,
      // iPXE's ROM crashes in an incomplete KVM, which this host may have.
      accelerator: 'tcg',
      bootOrder: ['channel', 'disk'],
      disks: [],
      nics: [nic],
      noReboot: true,
      ...changes,
    });
    this.#machines.push(machine);
    return machine;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#machines.map((machine) => machine.kill()));
    await this.stopContent();
    await this.#network.close();
    await this.channel[Symbol.asyncDispose]();
    await rm(this.directory, { recursive: true, force: true });
  }
}

/** Returns boot files of a guest with the test's script and files. */
export function bootOf(
  { channel, uuid }: InstanceView,
  script: string,
  files: Readonly<Record<string, string>> = {},
  loader: string | null = null,
): ViewBoot {
  const file = (text: string): { content: string; isSecretBearing: boolean } => ({
    content: Buffer.from(text).toString('base64'),
    isSecretBearing: false,
  });
  return {
    bootEnv: 'test-install',
    script: `${channel.mac}.ipxe`,
    loader,
    files: {
      [`${channel.mac}.ipxe`]: file(script),
      ...Object.fromEntries(
        Object.entries(files).map(([name, text]) => [`machines/${uuid}/${name}`, file(text)]),
      ),
    },
    hasTree: true,
  };
}

/** Returns the files of a folder as an extracted archive. */
export function folderTree(folder: string): BootTree {
  return {
    open: async ({ path }) => {
      const handle = await open(join(folder, decodeURIComponent(path))).catch(() => null);
      if (handle === null) return { kind: 'refusal', status: 404, reason: 'no such file' };
      const { size: sizeBytes } = await handle.stat();
      const etag = `"${createHash('sha256').update(`${folder}/${path}`).digest('base64url')}"`;
      return { kind: 'slice', handle, offset: 0, sizeBytes, etag };
    },
  };
}

/** Starts the content socket of a channel with only boot trees. */
export async function serveBootTrees(
  channel: ChannelLab,
  trees: ReadonlyMap<string, BootTree>,
): Promise<ContentServer> {
  return await startContentServer({
    socketPath: channel.contentSocket,
    gid: METAD_UID,
    logger: silentLogger,
    clock: systemClock,
    content: {
      openImage: async () => undefined,
      openRelay: async () => ({ kind: 'refusal', status: 404, reason: 'no relay' }),
      openPackage: async () => undefined,
      openMirror: async () => undefined,
      issueToken: async () => ({ kind: 'refused', status: 403, reason: 'no identity' }),
      findService: async () => undefined,
      findBootTree: async (uuid) => trees.get(uuid),
    },
  });
}
