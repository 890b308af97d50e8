import { createSocket, type RemoteInfo, type Socket } from 'node:dgram';
import { once } from 'node:events';

const HEADER_BYTES = 12;
/** What every name has. */
export const EVERY_ADDRESS = '192.0.2.53';

/** A query for a name's address, as RFC 1035 has it (4.1). */
export function encodeQuestion(id: number, name: string): Buffer {
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt16BE(id, 0);
  header.writeUInt16BE(0x0100, 2); // Recursion is desired.
  header.writeUInt16BE(1, 4);
  const labels = name
    .split('.')
    .map((label) => Buffer.concat([Buffer.from([label.length]), Buffer.from(label)]));
  return Buffer.concat([header, ...labels, Buffer.from([0, 0, 1, 0, 1])]);
}

/** The question, and one address of it. */
export function answerQuestion(question: Buffer): Buffer {
  let end = HEADER_BYTES;
  while (question[end] !== 0 && end < question.length) end += 1 + (question[end] ?? 0);
  const answer = Buffer.from(question.subarray(0, end + 5));
  answer.writeUInt16BE(0x8180, 2);
  answer.writeUInt16BE(1, 6);
  answer.writeUInt32BE(0, 8);
  const record = Buffer.from('c00c000100010000003c0004', 'hex');
  return Buffer.concat([answer, record, Buffer.from(EVERY_ADDRESS.split('.').map(Number))]);
}

export interface DnsResponder {
  readonly socket: Socket;
  readonly port: number;
  /** Senders of questions, in order. */
  readonly askers: RemoteInfo[];
  /** Handles a question. The default answers it. */
  onQuestion: (question: Buffer, asker: RemoteInfo) => void;
  readonly answer: (question: Buffer, asker: RemoteInfo) => void;
  close(): void;
}

/** A DNS server on loopback that knows every name. */
export async function startDnsResponder(port = 0): Promise<DnsResponder> {
  const socket = createSocket('udp4');
  socket.bind(port, '127.0.0.1');
  await once(socket, 'listening');
  const askers: RemoteInfo[] = [];
  const answer = (question: Buffer, asker: RemoteInfo): void =>
    socket.send(answerQuestion(question), asker.port, asker.address);
  const responder: DnsResponder = {
    socket,
    port: socket.address().port,
    askers,
    onQuestion: answer,
    answer,
    close: () => socket.close(),
  };
  socket.on('message', (question, asker) => {
    askers.push(asker);
    responder.onQuestion(question, asker);
  });
  return responder;
}
