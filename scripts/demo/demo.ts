import { randomBytes } from 'node:crypto';
import { chmod, cp, mkdir, readFile, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { run as runCommand } from '#shared/process/run.ts';
import { buildGuestImage } from '../guest-image/build.ts';
import { findSecret } from './find-secret.ts';
import { createLab, type Lab } from './lab.ts';

const fixtures = join(import.meta.dirname, '../../fixtures/demo');
const FIRST = 'demo1.example.com';
const SECOND = 'demo2.example.com';
/** Emulated guests boot for half a minute on an idle host. */
const GUEST_REPORT_TIMEOUT_MS = 420_000;

function say(text: string): void {
  process.stdout.write(`\n\x1b[1m▌ ${text}\x1b[0m\n`);
}

function tell(text: string): void {
  process.stdout.write(`  ${text.trimEnd().replaceAll('\n', '\n  ')}\n`);
}

async function servePackage(): Promise<{ server: Server; url: string }> {
  const archive = join(tmpdir(), `gnt-demo-package-${process.pid}.tar.gz`);
  await runCommand('tar', [
    '-C',
    join(fixtures, 'package'),
    '--owner=0',
    '--group=0',
    '-czf',
    archive,
    '.',
  ]);
  const bytes = await readFile(archive);
  await runCommand('rm', [archive]);
  const server = createServer((request, response) => {
    response.writeHead(request.url === '/personal.tar.gz' ? 200 : 404, {
      'content-length': bytes.length,
    });
    response.end(bytes);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string')
    throw new Error('the package server has no port');
  return { server, url: `http://127.0.0.1:${address.port}/personal.tar.gz` };
}

async function must(lab: Lab, ...command: Parameters<Lab['run']>): Promise<string> {
  const result = await lab.run(...command);
  if (result.status !== 0) {
    throw new Error(
      `${command[0]} ${command[1].join(' ')} ended with status ${result.status}\n${result.stderr}`,
    );
  }
  return result.stdout;
}

async function receiveReport(lab: Lab, name: string): Promise<string> {
  const deadline = Date.now() + GUEST_REPORT_TIMEOUT_MS;
  const startedAt = Date.now();
  let report = '';
  let nextNote = 10;
  while (!report.includes('end-of-report')) {
    if (Date.now() > deadline)
      throw new Error(
        `${name} wrote nothing within ${GUEST_REPORT_TIMEOUT_MS / 1000} s: ${report}`,
      );
    report += await must(lab, 'gnt-instance', ['receive', name]);
    await sleep(3000);
    const seconds = Math.round((Date.now() - startedAt) / 1000);
    if (seconds >= nextNote) {
      tell(`waiting for the guest: ${seconds} s`);
      nextNote = seconds + 10;
    }
  }
  tell(`the guest reported ${Math.round((Date.now() - startedAt) / 1000)} s after its start:`);
  return report.replace('end-of-report\n', '');
}

async function demo(lab: Lab): Promise<void> {
  const startedAt = Date.now();
  say(
    '1. A real Debian image with stock cloud-init, and the appliance (both cached for the next run)',
  );
  const image = await buildGuestImage({ log: tell });
  tell(`guest image: ${image.path}`);
  await must(lab, 'gnt-appliance', ['build'], { isShown: true });

  say(`2. gnt-noded with its own root (${lab.paths.root}); it starts and watches gnt-metad`);
  await lab.startNode();
  tell(await must(lab, 'gnt-node', ['doctor']));

  say(
    '3. An OS definition with an untrusted create script, a package on a web server, a secret in a file',
  );
  const [osDir = ''] = lab.paths.osSearchPath;
  await mkdir(osDir, { recursive: true });
  await cp(join(fixtures, 'os/personal-debian'), join(osDir, 'personal-debian'), {
    recursive: true,
  });
  const secret = `canary-${randomBytes(12).toString('hex')}`;
  const secretFile = join(lab.paths.root, 'root-password');
  await writeFile(secretFile, `${secret}\n`, { mode: 0o600 });
  await chmod(secretFile, 0o600);
  const { server, url } = await servePackage();
  try {
    tell(await must(lab, 'gnt-os', ['list']));

    say(`4. gnt-instance add ${FIRST}`);
    const add = (name: string, greeting: string, userData: string): Promise<string> =>
      must(
        lab,
        'gnt-instance',
        [
          'add', '--os-image', image.path, '-o', 'personal-debian', '--communication=yes',
          '-O', `greeting=${greeting}`, '--os-parameters-private', 'licence=LIC-0001',
          '--os-parameters-secret', `root_password=@${secretFile}`,
          '--personalization-package', url, '--user-data', userData,
          '-s', '2G', '-B', 'memory=512,vcpus=2', '--net', '0:mode=user', name,
        ],
        { isShown: true },
      ); // prettier-ignore
    await add(FIRST, 'good morning', join(fixtures, 'user-data.sh'));

    say(
      '5. The instance boots from its own disk. Its cloud-init finds the metadata service and runs the user data',
    );
    tell(await receiveReport(lab, FIRST));

    say(`6. gnt-instance info ${FIRST}`);
    tell(await must(lab, 'gnt-instance', ['info', FIRST]));

    say(
      '7. The secret is only on the disk of the instance and in its source file: not in other files, argv or environments of this host',
    );
    await proveSecretIsNowhere(lab, secret, secretFile);

    say(`8. A second instance, whose user data tries to impersonate ${FIRST}`);
    // The type of the demonstrated command's output.
    const { channel } = JSON.parse(await must(lab, 'gnt-instance', ['info', '--json', FIRST])) as {
      channel: { ip: string };
    };
    const nosy = join(lab.paths.root, 'nosy.sh');
    const script = await readFile(join(fixtures, 'user-data.sh'), 'utf8');
    await writeFile(
      nosy,
      script.replace(
        '\n',
        `\nmkdir -p /etc/gnt-demo; echo ${channel.ip} >/etc/gnt-demo/neighbour\n`,
      ),
    );
    await add(SECOND, 'good evening', nosy);
    tell(await receiveReport(lab, SECOND));
    tell(await must(lab, 'gnt-instance', ['list']));

    say('9. Everything is removed');
    for (const name of [FIRST, SECOND])
      await must(lab, 'gnt-instance', ['remove', '--force', '--shutdown-timeout=0', name], {
        isShown: true,
      });
    const status = await lab.stopNode();
    const leftovers = await lab.findLeftovers();
    tell(
      `gnt-noded ended with status ${status}; left behind: ${leftovers.length === 0 ? 'nothing' : leftovers.join('; ')}`,
    );
    if (status !== 0 || leftovers.length > 0) throw new Error('the node did not clean up');
    say(`Done in ${Math.round((Date.now() - startedAt) / 1000)} s.`);
  } finally {
    server.close();
  }
}

async function proveSecretIsNowhere(lab: Lab, secret: string, secretFile: string): Promise<void> {
  const planted = join(lab.paths.root, 'planted-to-prove-the-search');
  await writeFile(planted, `x${secret}x`);
  const isExcluded = (path: string): boolean =>
    path === secretFile || path.startsWith(lab.paths.disksDir);
  const found = await findSecret(secret, lab.paths.root, isExcluded);
  await runCommand('rm', [planted]);
  tell(`the search finds a planted copy: ${found.includes(planted) ? 'yes' : 'NO'}`);
  const places = found.filter((path) => path !== planted);
  tell(`other places: ${places.length === 0 ? 'none' : places.join(', ')}`);
  if (places.length > 0 || !found.includes(planted))
    throw new Error('the secret was found in a place where it must not be');
}

const lab = await createLab('gnt-demo');
const onSignal = (): void => void lab.dispose().finally(() => process.exit(130));
process.once('SIGINT', onSignal);
process.once('SIGTERM', onSignal);
try {
  await demo(lab);
} catch (error) {
  process.stderr.write(
    `\nThe demo failed: ${error instanceof Error ? error.message : String(error)}\n`,
  );
  process.exitCode = 1;
} finally {
  await lab.dispose();
}
