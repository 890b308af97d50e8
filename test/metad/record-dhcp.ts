import { createSocket } from 'node:dgram';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { inNetworkNamespace, openDeviceSocket } from '#shared/sys/network-sockets.ts';
import { answerDhcp } from '../../metad/dhcp/answer.ts';
import { parseDhcpRequest } from '../../metad/dhcp/codec.ts';
import { ChannelLab } from './support/channel-lab.ts';
import { DHCP_CLIENTS, runDhcpClient } from './support/dhcp-clients.ts';
import type { DhcpClientProgram } from './support/dhcp-clients.ts';
import { DHCP_RECORDINGS, RECORDED_CLIENT } from './support/dhcp-recording.ts';
import type { DhcpRecording, RecordedMessage } from './support/dhcp-recording.ts';

/**
 * `node test/metad/record-dhcp.ts [NAME…]`: runs real DHCP clients against metad's answers and
 * records their messages in fixtures/dhcp/NAME.json.
 */

const DHCP_PORT = 67;
const CLIENT_PORT = 68;
const DEVICE = 'gnt.com.0';

async function record({ program, ...client }: DhcpClientProgram): Promise<DhcpRecording> {
  await using lab = await ChannelLab.create();
  const guest = await lab.addGuest({ ...RECORDED_CLIENT, device: DEVICE, isUnconfigured: true });
  // metad has no view of the guest, and so does not use the port.
  const fd = inNetworkNamespace(`/run/netns/${lab.namespace}`, () =>
    openDeviceSocket({ device: DEVICE, type: 'udp', address: '0.0.0.0', port: DHCP_PORT }),
  );
  const messages: RecordedMessage[] = [];
  const socket = createSocket('udp4');
  socket.on('message', (bytes) => {
    const request = parseDhcpRequest(bytes);
    const answer = request && answerDhcp(RECORDED_CLIENT, request);
    messages.push({ type: request?.type ?? null, hex: bytes.toString('hex') });
    if (answer) socket.send(answer.bytes, CLIENT_PORT, answer.destination);
  });
  socket.bind({ fd });
  try {
    for (const found of await runDhcpClient({ program, ...client }, guest.namespace))
      if (!found.includes(`inet ${RECORDED_CLIENT.ip}/16`)) throw new Error(`${program}: ${found}`);
  } finally {
    socket.close();
  }
  return { client: program, messages };
}

const names = process.argv.slice(2);
await mkdir(DHCP_RECORDINGS, { recursive: true });
for (const [name, client] of Object.entries(DHCP_CLIENTS)) {
  if (names.length > 0 && !names.includes(name)) continue;
  const recording = await record(client);
  await writeFile(
    join(DHCP_RECORDINGS, `${name}.json`),
    `${JSON.stringify(recording, undefined, 2)}\n`,
  );
}
