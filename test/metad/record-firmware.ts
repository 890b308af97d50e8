import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { inNetworkNamespace, openDeviceSocket } from '#shared/sys/network-sockets.ts';
import { answerDhcp } from '../../metad/dhcp/answer.ts';
import { parseDhcpRequest } from '../../metad/dhcp/codec.ts';
import type { MachineSpec } from '../../noded/vmm/machine.ts';
import { NetbootLab } from '../lab/netboot-lab.ts';
import { ovmf } from '../lab/unpacked-packages.ts';
import {
  FIRMWARE_RECORDINGS,
  type DhcpRecording,
  type RecordedMessage,
} from './support/dhcp-recording.ts';

/**
 * `node test/metad/record-firmware.ts`: boots VMs from their channels against metad's answers and
 * records their messages in fixtures/dhcp-firmware/NAME.json.
 */

const PORT = 67;
const CLIENT_PORT = 68;
const DEADLINE_MS = 60_000;

async function record(client: string, changes: Partial<MachineSpec>): Promise<DhcpRecording> {
  await using lab = await NetbootLab.create();
  const guest = await lab.addGuest();
  const { mac, ip } = guest.view.channel;
  const fd = inNetworkNamespace(`/run/netns/${lab.channel.namespace}`, () =>
    openDeviceSocket({ device: guest.nic.device, type: 'udp', address: '0.0.0.0', port: PORT }),
  );
  const messages: RecordedMessage[] = [];
  const socket = createSocket('udp4');
  const boot = { script: 'http://169.254.169.254/script', loader: 'http://169.254.169.254/loader' };
  const hasLease = once(socket, 'lease', { signal: AbortSignal.timeout(DEADLINE_MS) });
  socket.on('message', (bytes) => {
    const request = parseDhcpRequest(bytes);
    const answer = request && answerDhcp({ mac, ip, hostName: 'web1', boot }, request);
    messages.push({ type: request?.type ?? null, hex: bytes.toString('hex') });
    if (answer) socket.send(answer.bytes, CLIENT_PORT, answer.destination);
    if (request?.type === 'request') socket.emit('lease');
  });
  socket.bind({ fd });
  try {
    await lab.start(guest, changes);
    await hasLease;
  } finally {
    socket.close();
  }
  return { client, messages };
}

const uefi = { variablesPath: '/run/gnt-record-firmware.fd', firmwares: [await ovmf()] };
await mkdir(FIRMWARE_RECORDINGS, { recursive: true });
for (const [name, client, changes] of [
  ['ipxe-bios', 'iPXE of Debian’s ipxe-qemu, BIOS', {}],
  ['ipxe-efi', 'iPXE of Debian’s ipxe-qemu, EFI by OVMF', { uefi }],
] as const)
  await writeFile(
    join(FIRMWARE_RECORDINGS, `${name}.json`),
    `${JSON.stringify(await record(client, changes), undefined, 2)}\n`,
  );
await rm(uefi.variablesPath, { force: true });
