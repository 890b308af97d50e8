import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';

const PORT = 53;
const ASK_EVERY_MS = 1000;
/** A swapping host answers late. */
const PATIENCE_MS = 5000;
/** `version.bind`, class CHAOS, type TXT: dnsmasq answers it without an upstream server. */
const QUESTION = Buffer.from('4e54010000010000000000000776657273696f6e0462696e640000100003', 'hex');

/** Returns whether a DNS server answers at an address of this host. Never rejects. */
export async function answersQuestions(address: string): Promise<boolean> {
  const socket = createSocket('udp4');
  const over = new AbortController();
  const ask = async (): Promise<void> => {
    for (let passedMs = 0; passedMs < PATIENCE_MS; passedMs += ASK_EVERY_MS) {
      socket.send(QUESTION, PORT, address);
      await delay(ASK_EVERY_MS, undefined, { signal: over.signal });
    }
  };
  // A refusal means that the port is closed.
  socket.on('error', () => over.abort());
  try {
    const answer = once(socket, 'message', { signal: over.signal }).then(() => true);
    const silence = ask().then(() => false);
    return await Promise.race([answer, silence]);
  } catch {
    return false;
  } finally {
    over.abort();
    socket.close();
  }
}
