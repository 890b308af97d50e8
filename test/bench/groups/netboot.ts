import { mkdir, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { bootOf, folderTree, NetbootLab } from '../../lab/netboot-lab.ts';
import { measureRendering } from '../support/boot-rendering.ts';
import { measureManyBoots } from '../support/many-boots.ts';
import { median, type Report } from '../support/measurement.ts';
import { startPeers } from '../support/peer-servers.ts';

/**
 * Measures a boot by the ROM of QEMU's NIC: the time to the request for the script, and the
 * throughput of kernel and initrd, from metad through the content socket and from nginx on the same
 * TAP in alternation. All times are from metad's log of one boot. Also measures the rendering of
 * templates before, and sixteen guests that boot at once after.
 */
const BYTES = 45 * 1024 * 1024;
/** Rounds for metad and nginx each; the first one alternates. */
const ROUNDS = 21;
const NGINX_PORT = 8081;
/** With TCG on a busy host, each fetch takes ten seconds. */
const DEADLINE_MS = 900_000;

export async function measure(report: Report): Promise<void> {
  measureRendering(report);
  await measureRom(report);
  await measureManyBoots(report);
}

async function measureRom(report: Report): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const lab = stack.use(await NetbootLab.create());
  const files = join(lab.directory, 'files');
  await mkdir(files);
  const guest = await lab.addGuest();
  const { uuid, channel } = guest.view;
  const base = `http://169.254.169.254/ganeti/latest/boot/machines/${uuid}`;
  const peers = await startPeers(
    {
      ...{ namespace: lab.channel.namespace, directory: lab.directory, guestIp: channel.ip },
      ...{ path: 'small', body: 'x', parameters: {} },
    },
    stack,
  );
  const hasNginx = peers.some(({ name }) => name === 'nginx');
  await lab.openPort(NGINX_PORT);
  for (const folder of [files, ...(hasNginx ? [join(lab.directory, 'nginx/files')] : [])]) {
    await writeFile(join(folder, 'big'), '');
    await truncate(join(folder, 'big'), BYTES);
  }
  lab.trees.set(uuid, folderTree(files));
  const fetches = [
    ['own', `imgfetch ${base}/boot/big`],
    ...(hasNginx ? [['nginx', `imgfetch http://169.254.169.254:${NGINX_PORT}/big`] as const] : []),
  ] as const;
  const rounds = Array.from({ length: ROUNDS }, (_, round) =>
    (round % 2 === 0 ? fetches : fetches.toReversed()).flatMap(([name, fetch]) => [
      ...[`imgfetch ${base}/begin-${name}-${round}`, fetch],
      ...[`imgfetch ${base}/end-${name}-${round}`, 'imgfree'],
    ]),
  ).flat();
  const script = ['#!ipxe', ...rounds, `imgfetch ${base}/done`, 'poweroff', ''].join('\n');
  const marks = Object.fromEntries(
    [...script.matchAll(/\/((?:begin|end)-.*|done)$/gm)].map(([, name = '']) => [name, 'x']),
  );
  await lab.put({ ...guest.view, boot: bootOf(guest.view, script, marks) });
  await lab.start(guest);
  await lab.channel.logLine('/done"', DEADLINE_MS);
  const lines = lab.channel.log.split('\n');
  const timeOf = (text: string): number =>
    Date.parse(/"time":"([^"]+)"/.exec(lines.find((line) => line.includes(text)) ?? '')?.[1] ?? '');
  const rateOf = (name: string): number =>
    median(
      Array.from({ length: ROUNDS }, (_, round) => {
        const ms = timeOf(`/end-${name}-${round}"`) - timeOf(`/begin-${name}-${round}"`);
        return BYTES / 1e6 / (ms / 1000);
      }),
    );
  const alone = { unit: 'ms', compared_with: null };
  const asked = lines.filter((line) => line.includes('"type":"discover"')).length;
  report({ ...alone, name: 'DISCOVERs of a boot', unit: '', value: asked });
  report({
    ...alone,
    name: 'from the DISCOVER to the GET of the script',
    value: timeOf('.ipxe"') - timeOf('"type":"discover"'),
  });
  report({
    name: 'kernel and initrd (45 MiB) by the ROM',
    value: rateOf('own'),
    unit: 'MB/s',
    compared_with: hasNginx ? { name: 'nginx', value: rateOf('nginx') } : null,
  });
}
