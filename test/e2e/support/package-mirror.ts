import { createHash, randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { listenOnLoopback } from '../../lab/listen-on-loopback.ts';

const repository = join(import.meta.dirname, '../../../fixtures/debian-repository');

export interface PackageMirror {
  /** The folder that a node may allow. */
  readonly url: string;
  /** A hook that uses it with the appliance's own tools and prints the results: see `told`. */
  readonly hook: string;
  /** Lines that the hook prints. */
  readonly told: readonly string[];
  /** All requested paths. */
  readonly asked: readonly string[];
  close(): void;
}

/**
 * Starts a web server with a Debian repository in one folder, and a file outside of it.
 * @param name the mirror's name on the node
 */
export async function startPackageMirror(name: string): Promise<PackageMirror> {
  const random = randomBytes(256 * 1024);
  const asked: string[] = [];
  const server = createServer((request, response) => {
    const path = request.url ?? '';
    asked.push(path);
    const [, file] = /^\/debian\/([\w./-]+)$/.exec(path) ?? [];
    const bytes =
      file === 'random' ? Promise.resolve(random) : readFile(join(repository, file ?? 'none'));
    bytes.then(
      (content) => response.end(content),
      () => response.writeHead(path === '/outside' ? 200 : 404).end(),
    );
  });
  const port = await listenOnLoopback(server);
  return {
    url: `http://127.0.0.1:${port}/debian`,
    hook: composeHook(name, await readFile(join(repository, 'keyring.gpg'), 'base64')),
    told: [
      `random ${createHash('sha256').update(random).digest('hex')}`,
      'base-files of the test repository',
      'refused 400 400 404',
    ],
    asked,
    close: () => server.close(),
  };
}

function composeHook(name: string, keyring: string): string {
  const variable = `$GNT_MIRROR_${name.toUpperCase().replaceAll('-', '_')}`;
  return `
stages:
  after-install:
    - name: mirror
      files: [{path: /run/test-keyring.gpg, encoding: b64, content: "${keyring}"}]
      commands:
        - echo "random $(curl -sf "${variable}/random" | sha256sum | cut -d' ' -f1)"
        - |
          debootstrap --foreign --variant=minbase --exclude=apt --no-resolve-deps \\
            --keyring=/run/test-keyring.gpg stable /tmp/bootstrapped "${variable}" >&2
          cat /tmp/bootstrapped/usr/share/base-files/note
        - |
          echo "refused$(curl -s --path-as-is -w '%{stderr} %{http_code}' \\
            "${variable}/../outside" "${variable}/%2e%2e/outside" "${variable}-not/random" 2>&1 >/dev/null)"
`;
}
