import { appendFileSync } from 'node:fs';
import { createServer, request } from 'node:http';

/**
 * Runs in a guest's network, which redirects the guest's own requests to it. Passes them on to the
 * service over IPv6, and appends each as a line of JSON to the given file. Prints `ready` when it
 * listens.
 */

const PORT = 8080;
const [file = ''] = process.argv.slice(2);

const server = createServer((incoming, outgoing) => {
  const chunks: Buffer[] = [];
  incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
  incoming.on('end', () => {
    const { method = '', url = '', rawHeaders } = incoming;
    const body = Buffer.concat(chunks);
    const upstream = request(
      {
        host: 'fe80::a9fe:a9fe%eth0',
        path: url,
        method,
        headers: rawHeaders,
        agent: false,
      },
      (answer) => {
        const headers = Object.fromEntries(
          rawHeaders.flatMap((name, index) =>
            index % 2 === 0 ? [[name, rawHeaders[index + 1] ?? '']] : [],
          ),
        );
        const line = {
          method,
          path: url,
          headers,
          body: body.toString(),
          status: answer.statusCode,
        };
        appendFileSync(file, `${JSON.stringify(line)}\n`);
        outgoing.writeHead(answer.statusCode ?? 502, answer.rawHeaders);
        answer.pipe(outgoing);
      },
    );
    upstream.on('error', () => outgoing.destroy());
    upstream.end(body);
  });
});
server.listen(PORT, '0.0.0.0', () => process.stdout.write('ready\n'));
