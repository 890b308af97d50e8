import { randomBytes } from 'node:crypto';
import { cp, mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { run } from '#shared/process/run.ts';
import { buildGuestImage } from '../../../scripts/guest-image/build.ts';
import { createLab, type Lab } from '../../../scripts/demo/lab.ts';
import type { Report } from '../support/measurement.ts';
import { listenOnLoopback } from '../../lab/listen-on-loopback.ts';

const fixtures = join(import.meta.dirname, '../../../fixtures');
const MEGA = 1e6;
const COPY_TIMEOUT_MS = 120_000;
const PEER_TIMEOUT_MS = 600_000;

interface InstallTiming {
  readonly wallMs: number;
  readonly stages: readonly { stage: string; durationMs: number; summary: string }[];
}

/**
 * Installs the demo's guest image twice on its own node: with a package, and with a script that
 * only runs qemu-img. Takes a minute on an idle host with cached images.
 */
export async function measure(report: Report): Promise<void> {
  const image = await buildGuestImage({ log: () => undefined });
  const lab = await createLab('gnt-bench');
  const { server, port } = await servePackage(lab);
  try {
    await must(lab, 'gnt-appliance', ['build']);
    await installDefinition(lab);
    await lab.startNode();
    const overlay = ['--personalization-package', `http://127.0.0.1:${port}/package.tar.gz`];
    // As every first installation, this one fills the page cache and writes the disk's blocks for
    // the first time.
    const whole = await install(lab, 'bench1.example.com', image.path, overlay);
    reportInstall(report, whole);
    const bytes = await virtualBytes(image.path);
    const copyMs = await timeHostCopy(lab, image.path);
    const dump = dumpRate(whole);
    const host = { name: 'cp --sparse=always on the host', value: bytes / MEGA / (copyMs / 1000) };
    report({ name: 'image dump', value: dump, unit: 'MB/s', compared_with: host });

    const alone = await install(lab, 'bench2.example.com', image.path, ['-o', 'qemu-img-speed']);
    const log = await must(lab, 'gnt-instance', ['log', 'bench2.example.com']);
    const hundredths = Number(/qemu-img-hundredths (\d+)/.exec(log)?.[1]);
    report({
      name: 'image dump, second disk',
      value: dumpRate(alone),
      unit: 'MB/s',
      compared_with: {
        name: 'qemu-img convert in the same VM',
        value: bytes / MEGA / (hundredths / 100),
      },
    });
    const peer = await timeLibguestfs(lab, image.path);
    const compare = (name: string, ms: number, other: string, otherMs: number | undefined): void =>
      report({
        name,
        value: ms / 1000,
        unit: 's',
        compared_with: otherMs === undefined ? null : { name: other, value: otherMs / 1000 },
      });
    compare('add to agent start', beforeAgent(whole), 'guestfish run', peer?.launchMs);
    // The second start, as for guestfish: at the first start, disks and programs are not in the
    // page cache.
    compare('QEMU start to agent start', bootMs(alone), 'guestfish run', peer?.launchMs);
    compare('total of image and overlay', whole.wallMs, 'guestfish', peer?.totalMs);
    await measureMemory(lab, report, image.path);
    await measureSideBySide(lab, report, { image: image.path, overlay, aloneMs: whole.wallMs });
  } finally {
    server.close();
    await lab.dispose();
  }
}

const AT_ONCE = 4;

interface SideBySide {
  readonly image: string;
  readonly overlay: readonly string[];
  /** Duration of one such installation. */
  readonly aloneMs: number;
}

/**
 * Measures concurrent installations of one image. Ideally, as many as processors take as long as
 * one.
 */
async function measureSideBySide(
  lab: Lab,
  report: Report,
  { image, overlay, aloneMs }: SideBySide,
): Promise<void> {
  const startedAt = performance.now();
  await Promise.all(
    Array.from({ length: AT_ONCE }, (_, index) =>
      install(lab, `side${index}.example.com`, image, overlay),
    ),
  );
  report({
    name: `${AT_ONCE} installations at once`,
    value: (performance.now() - startedAt) / 1000,
    unit: 's',
    compared_with: {
      name: `one after the other on each of ${availableParallelism()} processors`,
      value: ((aloneMs / 1000) * AT_ONCE) / availableParallelism(),
    },
  });
}

const SMALL_IMAGE_BYTES = 4 * 1024 * 1024;
/** An image without a system needs its format as an option. */
const RAW = ['--image-format', 'raw'];

/** Measures the memory of an appliance, which must not grow with the image. */
async function measureMemory(lab: Lab, report: Report, image: string): Promise<void> {
  const small = join(lab.paths.root, 'small.raw');
  await writeFile(small, randomBytes(SMALL_IMAGE_BYTES));
  const ofLarge = await peakDuring(lab, install(lab, 'large.example.com', image, []));
  const ofSmall = await peakDuring(lab, install(lab, 'small.example.com', small, RAW));
  report({
    name: `appliance with a ${Math.round((await virtualBytes(image)) / MEGA)} MB image, resident`,
    value: ofLarge,
    unit: 'MiB',
    compared_with: { name: `with ${Math.round(SMALL_IMAGE_BYTES / MEGA)} MB`, value: ofSmall },
  });
}

/** Returns the peak memory of the largest QEMU process of this node during `work`, in MiB. */
async function peakDuring(lab: Lab, work: Promise<unknown>): Promise<number> {
  let isRunning = true;
  void work.finally(() => (isRunning = false)).catch(() => undefined);
  let peakKib = 0;
  while (isRunning) {
    peakKib = Math.max(peakKib, await peakOfMachines(lab));
    await Promise.race([work, sleep(500)]);
  }
  await work;
  return peakKib / 1024;
}

/** Returns the peak memory of the largest QEMU process of this node so far, in KiB. */
async function peakOfMachines(lab: Lab): Promise<number> {
  const machines = (await lab.processes()).filter(({ command }) => /qemu-system/.test(command));
  const peaks = machines.map(async ({ pid }) => {
    const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
    return Number(/^VmHWM:\s+(\d+)/m.exec(status)?.[1] ?? 0);
  });
  return Math.max(0, ...(await Promise.all(peaks)));
}

/**
 * Measures the same installation with guestfish, in TCG like our appliance.
 * @returns undefined when libguestfs-tools is not installed
 */
async function timeLibguestfs(
  lab: Lab,
  image: string,
): Promise<{ launchMs: number; totalMs: number } | undefined> {
  if ((await run('sh', ['-c', 'command -v guestfish || true'])).stdout === '') return undefined;
  const disk = join(lab.paths.root, 'guestfish.raw');
  await run('truncate', ['-s', '2G', disk]);
  const script = [
    'run',
    'copy-device-to-device /dev/sdb /dev/sda sparse:true',
    'blockdev-rereadpt /dev/sda',
    'mount /dev/sda2 /',
    `tar-in ${join(lab.paths.root, 'package.tar.gz')} / compress:gzip`,
    'umount-all',
  ].join('\n');
  const fish = ['--format=raw', '-a', disk, '--format=qcow2', '--ro', '-a', image];
  const options = {
    timeoutMs: PEER_TIMEOUT_MS,
    env: {
      ...process.env, // SUPERMIN_KERNEL and others, for a host without kernel
      LIBGUESTFS_BACKEND: 'direct',
      LIBGUESTFS_BACKEND_SETTINGS: 'force_tcg',
    },
  };
  // The first run builds guestfish's appliance. Ours is already built.
  const launch = ['--format=raw', '-a', disk, 'run'];
  await run('guestfish', launch, options);
  const launchMs = await timed(() => run('guestfish', launch, options));
  const totalMs = await timed(() => run('guestfish', fish, { ...options, input: script }));
  await rm(disk);
  return { launchMs, totalMs };
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}

/** Returns the time until the agent's first line in milliseconds. */
function beforeAgent({ stages }: InstallTiming): number {
  const end = stages.findIndex(({ stage }) => stage === 'boot-appliance') + 1;
  return stages.slice(0, end).reduce((sum, { durationMs }) => sum + durationMs, 0);
}

function bootMs({ stages }: InstallTiming): number {
  return stages.find(({ stage }) => stage === 'boot-appliance')?.durationMs ?? NaN;
}

function reportInstall(report: Report, timing: InstallTiming): void {
  const stageMs = (name: string): number =>
    timing.stages.find(({ stage }) => stage === name)?.durationMs ?? NaN;
  const boot = timing.stages.find(({ stage }) => stage === 'boot-appliance');
  const [, afterKernel, afterUserSpace] =
    /agent started ([\d.]+) s after the kernel, ([\d.]+) s after the first process/.exec(
      boot?.summary ?? '',
    ) ?? [];
  const seconds = (name: string, ms: number): void =>
    report({ name, value: ms / 1000, unit: 's', compared_with: null });
  seconds('kernel start to agent start', Number(afterKernel) * 1000);
  seconds('first user-space process to agent start', Number(afterUserSpace) * 1000);
  seconds('image: dump and comparison', stageMs('image'));
}

function dumpRate(timing: InstallTiming): number {
  const summary = timing.stages.find(({ stage }) => stage === 'image')?.summary ?? '';
  return Number(/ at (\d+) MB\/s/.exec(summary)?.[1]);
}

async function install(
  lab: Lab,
  name: string,
  image: string,
  options: readonly string[],
): Promise<InstallTiming> {
  const startedAt = performance.now();
  await must(lab, 'gnt-instance', [
    'add',
    '--os-image',
    image,
    ...options,
    '-s',
    '2G',
    '--no-start',
    name,
  ]);
  const wallMs = performance.now() - startedAt;
  const info = JSON.parse(await must(lab, 'gnt-instance', ['info', '--json', name])) as {
    install: { stages: InstallTiming['stages'] };
  };
  return { wallMs, stages: info.install.stages };
}

async function installDefinition(lab: Lab): Promise<void> {
  const [osDir = ''] = lab.paths.osSearchPath;
  await mkdir(osDir, { recursive: true });
  await cp(join(fixtures, 'bench/os'), osDir, { recursive: true });
}

/** Measures the host's copy of a sparse file, including the sync. */
async function timeHostCopy(lab: Lab, image: string): Promise<number> {
  const raw = join(lab.paths.root, 'bench.raw');
  const copy = `${raw}.copy`;
  const options = { timeoutMs: COPY_TIMEOUT_MS };
  await run('qemu-img', ['convert', '-O', 'raw', image, raw], options);
  const startedAt = performance.now();
  await run('cp', ['--sparse=always', raw, copy], options);
  await run('sync', [copy], options);
  const ms = performance.now() - startedAt;
  await rm(raw);
  await rm(copy);
  return ms;
}

async function virtualBytes(image: string): Promise<number> {
  const { stdout } = await run('qemu-img', ['info', '--output=json', image]);
  return (JSON.parse(stdout) as { 'virtual-size': number })['virtual-size'];
}

async function servePackage(lab: Lab): Promise<{ server: Server; port: number }> {
  const archive = join(lab.paths.root, 'package.tar.gz');
  await run('tar', [
    '-C',
    join(fixtures, 'demo/package'),
    '--owner=0',
    '--group=0',
    '-czf',
    archive,
    '.',
  ]);
  const bytes = await readFile(archive);
  const { size } = await stat(archive);
  const server = createServer((request, response) => {
    response.writeHead(request.url === '/package.tar.gz' ? 200 : 404, { 'content-length': size });
    response.end(bytes);
  });
  return { server, port: await listenOnLoopback(server) };
}

async function must(lab: Lab, ...command: Parameters<Lab['run']>): Promise<string> {
  const result = await lab.run(...command);
  if (result.status === 0) return result.stdout;
  throw new Error(
    `${command[0]} ${command[1].join(' ')} ended with status ${result.status}\n${result.stderr}`,
  );
}
