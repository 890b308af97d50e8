import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { listenOnLoopback } from '../../../lab/listen-on-loopback.ts';

export interface FtpServerOptions {
  content: Buffer;
  /** `YYYYMMDDhhmmss` */
  modified: string;
  login?: { user: string; password: string };
  /** Closes the data connection after so many bytes, this many times. */
  cutAfter?: number;
  cuts?: number;
}

export interface FtpServer {
  readonly url: string;
  readonly port: number;
  readonly options: FtpServerOptions;
  /** Commands, without passwords. */
  readonly commands: string[];
  [Symbol.asyncDispose](): Promise<void>;
}

/** Implements as much of RFC 959 as curl needs to read one file, `/image.raw`. */
export async function startFtpServer(options: FtpServerOptions): Promise<FtpServer> {
  const commands: string[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    serve(socket, options, commands, sockets);
  });
  const port = await listenOnLoopback(server);
  return {
    url: `ftp://127.0.0.1:${port}/image.raw`,
    port,
    options,
    commands,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

function serve(
  socket: Socket,
  options: FtpServerOptions,
  commands: string[],
  sockets: Set<Socket>,
): void {
  const say = (line: string): void => void socket.write(`${line}\r\n`);
  let data: Server | undefined;
  let connected: Promise<Socket> | undefined;
  let offset = 0;
  let user = '';
  const reply = (verb: string, argument: string): void => {
    const isFile = argument.endsWith('image.raw');
    switch (verb) {
      case 'USER':
        user = argument;
        return say('331 password');
      case 'PASS': {
        const { login } = options;
        const isAllowed = !login || (login.user === user && login.password === argument);
        return say(isAllowed ? '230 in' : '530 no');
      }
      case 'PWD':
        return say('257 "/"');
      case 'CWD':
      case 'TYPE':
        return say('200 ok');
      case 'MDTM':
        return say(isFile ? `213 ${options.modified}` : '550 none');
      case 'SIZE':
        return say(isFile ? `213 ${options.content.length}` : '550 none');
      case 'REST':
        offset = Number(argument);
        return say('350 ok');
      case 'EPSV':
        data = createServer().listen(0, '127.0.0.1', () =>
          say(`229 ok (|||${(data?.address() as AddressInfo).port}|)`),
        );
        // Clients connect before they send the command.
        connected = new Promise((resolve) => data?.once('connection', resolve));
        return undefined;
      case 'RETR':
        if (!isFile) return say('550 no such file');
        say('150 here');
        void connected?.then((connection) => {
          sockets.add(connection);
          connection.on('error', () => undefined);
          const isCut = (options.cuts ?? 0) > 0;
          if (isCut) options.cuts = (options.cuts ?? 0) - 1;
          const body = options.content.subarray(offset);
          offset = 0;
          connection.end(isCut ? body.subarray(0, options.cutAfter) : body, () => {
            say(isCut ? '426 cut' : '226 done');
            data?.close();
          });
        });
        return undefined;
      case 'QUIT':
        say('221 bye');
        return void socket.end();
      default:
        return say('502 what');
    }
  };
  say('220 ready');
  socket.on('data', (chunk: Buffer) => {
    for (const line of chunk.toString().split('\r\n').filter(Boolean)) {
      const [verb = '', ...rest] = line.split(' ');
      commands.push(verb === 'PASS' ? 'PASS' : line);
      reply(verb.toUpperCase(), rest.join(' '));
    }
  });
}
