import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';

/** Undocumented members of Node's HTTP parser. */
interface ServerParser {
  onIncoming: ((request: IncomingMessage, keepAlive: boolean) => number) | null;
  /** Copies the bytes of the present read, up to 64 KiB. */
  getCurrentBuffer: () => Buffer;
}

const NOTHING = Buffer.alloc(0);

/**
 * llhttp treats every return value of the headers callback except 0, 1 and 2 as an error of the
 * program, and stops.
 */
const STOP = -1;

/** llhttp ends after this head, and the server gets the connection with the event `upgrade`. */
const TAKE_OUT = 2;

/** `take-out`: the connection is handed over with `upgrade`, without a parser. */
export type GateAnswer = 'enter' | 'take-out' | 'stop';

/**
 * Calls `ask` before each request of a connection, once its headers are parsed and before a
 * response is created. After `stop` the parser reads nothing more, and the server gets the
 * `clientError` HPE_CB_HEADERS_COMPLETE.
 *
 * Without it, Node passes on all requests of one read, a thousand and more, and destroying the
 * socket does not stop that.
 *
 * The read is not copied into the error either. Node copies it for every parser error and this
 * program never uses it; a guest whose requests are all refused would cause a full mark of the heap
 * (20 ms) three times a second.
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
    // Undocumented: Node reads this property to decide whether to hand over the connection.
    Object.assign(request, { upgrade: true });
    isTakenOut = true;
    return TAKE_OUT;
  };
  // Parsers are reused, also by other servers, which need the copy.
  const { getCurrentBuffer } = Object.getPrototypeOf(parser) as ServerParser;
  parser.onIncoming = gated;
  parser.getCurrentBuffer = () =>
    isTakenOut || parser.onIncoming !== gated ? getCurrentBuffer.call(parser) : NOTHING;
}
