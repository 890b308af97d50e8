import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';

/** What Node's parser of a server's connection has, though nothing says so. */
interface ServerParser {
  onIncoming: ((request: IncomingMessage, keepAlive: boolean) => number) | null;
}

/**
 * llhttp takes every answer to the end of the headers but 0, 1 and 2 for a failure of the program
 * that uses it, and stops.
 */
const STOP = -1;

/** llhttp then ends with this head, and the server gets the connection with the event `upgrade`. */
const TAKE_OUT = 2;

/** `take-out`: the connection is handed over with `upgrade`, without a parser. */
export type GateAnswer = 'enter' | 'take-out' | 'stop';

/**
 * Asks before each request of a connection, when its headers are there and before anything is made
 * for its answer, whether it may come in. If it is to stop, nothing is parsed that came after it, and the
 * server gets the `clientError` HPE_CB_HEADERS_COMPLETE.
 *
 * Node hands a program all requests that came in one read, a thousand of them and more, and
 * destroying the socket does not end that.
 */
export function gateRequests(socket: Socket, ask: (request: IncomingMessage) => GateAnswer): void {
  // node:http keeps its parser there, undocumented: it may be missing.
  const { parser } = socket as Socket & { readonly parser?: ServerParser | null };
  const enter = parser?.onIncoming;
  if (!parser || !enter) return;
  parser.onIncoming = (request, keepAlive) => {
    const answer = ask(request);
    if (answer === 'enter') return enter(request, keepAlive);
    if (answer === 'stop') return STOP;
    // By this Node tells what it hands over; nothing documents it.
    Object.assign(request, { upgrade: true });
    return TAKE_OUT;
  };
}
