/**
 * Speaks metad's control protocol and does things that metad does not do on command: dying, sending
 * bad events, refusing. Its state is in memory, as metad's.
 */
import { rmSync } from 'node:fs';
import { createServer, request } from 'node:http';
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: {
    'control-socket': { type: 'string' },
    'content-socket': { type: 'string' },
    successor: { type: 'boolean' },
    fail: { type: 'boolean' },
  },
});
const controlSocket = values['control-socket'] ?? '';
if (values.fail) {
  process.stderr.write('cannot do it: no coffee\n');
  process.exit(3);
}

const startedAtMs = Date.now();
const views = new Map<string, unknown>();
const events: string[] = [];
const followers = new Set<(line: string) => void>();
const queue: Buffer[] = [];

process.on('SIGTERM', () => process.exit(0));
rmSync(controlSocket, { force: true });
const server = createServer((incoming, answer) => {
  const chunks: Buffer[] = [];
  incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
  // One table of requests is easier to read than twelve functions.
  // eslint-disable-next-line complexity
  incoming.on('end', () => {
    const body = Buffer.concat(chunks);
    const url = new URL(incoming.url ?? '/', 'http://metad');
    const uuid = url.pathname.split('/')[3] ?? '';
    const end = (status: number, text = ''): void => void answer.writeHead(status).end(text);
    switch (`${incoming.method} ${url.pathname.replace(uuid || '\0', 'UUID')}`) {
      case 'GET /v1/status':
        return end(
          200,
          JSON.stringify({ pid: process.pid, protocol: 1, startedAtMs, instances: [] }),
        );
      case 'PUT /v1/instances/UUID':
        if (body.includes('refuse-me'))
          return end(400, JSON.stringify({ code: 'VALIDATION', message: 'name: refused' }));
        views.set(uuid, JSON.parse(body.toString()));
        return end(204);
      case 'DELETE /v1/instances/UUID':
        views.delete(uuid);
        return end(204);
      case 'POST /v1/instances/UUID/queue':
        if (!views.has(uuid)) return end(404);
        if (body.length > 65536) return end(413);
        if (queue.length > 1) return void answer.writeHead(429, { 'retry-after': '1' }).end();
        queue.push(body);
        return end(204);
      case 'GET /v1/instances/UUID/queue': {
        if (!views.has(uuid)) return end(404);
        const bytes = queue.shift();
        if (!bytes) return end(204);
        return void answer.writeHead(200, { 'x-gnt-offset': String(bytes.length) }).end(bytes);
      }
      case 'GET /v1/instances/UUID/tree/a%20b/c':
        return void answer.writeHead(200, { 'content-type': 'text/x-tree' }).end('leaf');
      case 'GET /metrics':
        return end(200, '# metrics\n');
      case 'POST /emit':
        for (const line of body.toString().split('\n').filter(Boolean)) {
          events.push(line);
          for (const follow of followers) follow(line);
        }
        return end(204);
      case 'GET /v1/events': {
        const after = Number(url.searchParams.get('after'));
        answer.writeHead(200);
        answer.flushHeaders();
        events.slice(after).forEach((line) => answer.write(`${line}\n`));
        const follow = (line: string): void => void answer.write(`${line}\n`);
        followers.add(follow);
        answer.on('close', () => followers.delete(follow));
        return undefined;
      }
      case 'POST /cut':
        followers.clear();
        answer.writeHead(204).end(() => process.nextTick(() => server.closeAllConnections()));
        return undefined;
      case 'GET /content':
        // Fetches from noded as metad does, with its rights.
        return void request(
          {
            socketPath: values['content-socket'],
            path: url.searchParams.get('path'),
            headers: incoming.headers,
          },
          (content) => content.pipe(answer.writeHead(content.statusCode ?? 0, content.headers)),
        ).end();
      default:
        return end(404);
    }
  });
});
server.on('upgrade', (incoming, socket, head) => {
  if (incoming.url?.endsWith('/connect/22')) {
    socket.write(
      'HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: tcp\r\n\r\nSSH-',
    );
    if (head.length > 0) socket.write(head);
    socket.pipe(socket);
  } else {
    const body = JSON.stringify({ code: 'GUEST_UNREACHABLE', message: 'connection refused' });
    const status = incoming.url?.endsWith('/connect/404') ? '404 Not Found' : '502 Bad Gateway';
    socket.end(`HTTP/1.1 ${status}\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
  }
});
server.listen(controlSocket);
