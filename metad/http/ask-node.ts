import { requestOverSocket } from '#shared/socket/http-request.ts';
import { collect } from '#shared/stream/collect.ts';

/** Longer than any token with its tags, and any credentials. */
const MAX_ANSWER_BYTES = 32 * 1024;

/**
 * Asks the node daemon for a token or credentials of an instance.
 * @param socketPath of its content socket
 * @param path below `identity/`
 * @throws the system's error
 */
export async function askNodeForIdentity(
  socketPath: string,
  uuid: string,
  path: string,
  timeoutMs: number,
): Promise<{ readonly status: number; readonly text: string }> {
  const answer = await requestOverSocket({
    on: socketPath,
    path: `/v1/instances/${uuid}/identity/${path}`,
    idleTimeoutMs: timeoutMs,
  });
  const body = await collect(answer, MAX_ANSWER_BYTES);
  return { status: answer.statusCode ?? 502, text: body.toString('utf8').trim() };
}
