import { instanceInfo } from '#shared/contract/instance.ts';
import { ConsoleLogs } from '../../../noded/host/console-log.ts';
import type { Lab } from '../../../scripts/demo/lab.ts';
import { askSocket } from '../../lab/ask-socket.ts';

/**
 * Seconds that one request waits in the daemon: asking again and again would take processor time
 * from an emulated guest.
 */
const WAIT_S = 30;
const CONSOLE_TAIL_BYTES = 4096;

/**
 * What the guest of an instance writes to the host, in order, until it ends with `end`.
 * @throws Error with what came, and what the console said last, when the time is over
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

/** What the guest of an instance said last on its console. */
export async function readConsole(lab: Lab, name: string): Promise<string> {
  const { stdout } = await lab.run('gnt-instance', ['info', '--json', name]);
  const { running } = instanceInfo.parse(JSON.parse(stdout));
  const log = running ? new ConsoleLogs().ofProcess(running.pid) : undefined;
  const tail = log?.readTail(CONSOLE_TAIL_BYTES) ?? `nothing: ${JSON.stringify(running)}`;
  log?.close();
  return tail;
}
