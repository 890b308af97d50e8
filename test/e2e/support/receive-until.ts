import { instanceInfo } from '#shared/contract/instance.ts';
import { ConsoleLogs } from '../../../noded/host/console-log.ts';
import type { Lab } from '../../../scripts/demo/lab.ts';
import { askSocket } from '../../lab/ask-socket.ts';

/**
 * Seconds that one request waits in the daemon. Frequent requests would take processor time from an
 * emulated guest.
 */
const WAIT_S = 30;
const CONSOLE_TAIL_BYTES = 4096;

/**
 * Returns the guest's messages to the host, in order, until they end with `end`.
 * @throws Error with the received text and the end of the console, after the timeout
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
    if (Date.now() > deadline) {
      const console = await readConsole(lab, name);
      throw new Error(`${name} did not report, but wrote: '${text}'\nits console:\n${console}`);
    }
    const path = `/v1/instances/${name}/queue?wait=${WAIT_S}`;
    const { status, body } = await askSocket(lab.paths.nodedSocket, path);
    if (status !== 200 && status !== 204) throw new Error(`${name}: status ${status}: ${body}`);
    text += body;
  }
  return text;
}

/** Returns the end of a guest's console output. */
export async function readConsole(lab: Lab, name: string): Promise<string> {
  const { stdout } = await lab.run('gnt-instance', ['info', '--json', name]);
  const { running } = instanceInfo.parse(JSON.parse(stdout));
  const log = running ? new ConsoleLogs().ofProcess(running.pid) : undefined;
  const tail = log?.readTail(CONSOLE_TAIL_BYTES) ?? `nothing: ${JSON.stringify(running)}`;
  log?.close();
  return tail;
}
