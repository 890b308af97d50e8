import type { Lab } from '../../../scripts/demo/lab.ts';
import { askSocket } from '../../lab/ask-socket.ts';

/**
 * Seconds that one request waits in the daemon: asking again and again would take processor time
 * from an emulated guest.
 */
const WAIT_S = 30;

/**
 * What the guest of an instance writes to the host, in order, until it ends with `end`.
 * @throws Error with what came, when the time is over
 */
export async function receiveUntil(
  lab: Lab,
  name: string,
  end: string,
  timeoutMs: number,
): Promise<string> {
  const deadline = Date.now() + timeoutMs;
  let text = '';
  while (!text.endsWith(end)) {
    if (Date.now() > deadline) throw new Error(`${name} did not report, but wrote: '${text}'`);
    const path = `/v1/instances/${name}/queue?wait=${WAIT_S}`;
    const { status, body } = await askSocket(lab.paths.nodedSocket, path);
    if (status !== 200 && status !== 204) throw new Error(`${name}: status ${status}: ${body}`);
    text += body;
  }
  return text;
}
