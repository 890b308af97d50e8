import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';

/** What Node's parser of a server's connection has, though nothing says so. */
interface ServerParser {
  onIncoming: ((request: IncomingMessage, keepAlive: boolean) => number) | null;
  /** A copy of all that came in the present read: up to 64 KiB. */
  getCurrentBuffer: () => Buffer;
}

const NOTHING = Buffer.alloc(0);

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
 * for its answer, whether it may come in. If it is to stop, nothing is parsed that came after it,
 * and the server gets the `clientError` HPE_CB_HEADERS_COMPLETE.
 *
 * Node hands a program all requests that came in one read, a thousand of them and more, and
 * destroying the socket does not end that.
 *
 * Nor is the read copied for an error: Node does that for every error of the parser, nobody looks
 * at it, and a guest whose requests are all refused would have the whole heap marked (20 ms) three
 * times a second.
 */
export function gateRequests(socket: Socket, ask: (request: IncomingMessage) => GateAnswer): void {
  // node:http keeps its parser there, undocumented: it may be missing.
  const { parser } = socket as Socket & { readonly parser?: ServerParser | null };
  const enter = parser?.onIncoming;
  if (!parser || !enter) return;
  let isTakenOut = false;
  const gated = (request: IncomingMessage, keepAlive: boolean): number => {
    const answer = ask(request);
    if (answer === 'enter') return enter(request, keepAlive);
    if (answer === 'stop') return STOP;
    // By this Node tells what it hands over; nothing documents it.
    Object.assign(request, { upgrade: true });
    isTakenOut = true;
    return TAKE_OUT;
  };
  // Parsers are used again, for other servers too: then it is theirs, and their read is copied.
  const { getCurrentBuffer } = Object.getPrototypeOf(parser) as ServerParser;
  parser.onIncoming = gated;
  parser.getCurrentBuffer = () =>
    isTakenOut || parser.onIncoming !== gated ? getCurrentBuffer.call(parser) : NOTHING;
}
