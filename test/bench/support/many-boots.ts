import { randomUUID } from 'node:crypto';
import { mkdtemp, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '#shared/clock/clock.ts';
import type { InstanceView } from '#shared/contract/view.ts';
import { silentLogger } from '#shared/log/log.ts';
import { startContentServer } from '../../../noded/net/metad-link/content-server.ts';
import { bootOf, folderTree } from '../../lab/netboot-lab.ts';
import { ChannelLab, METAD_UID, type Guest } from '../../metad/support/channel-lab.ts';
import { exampleView } from '../../metad/support/view-fixture.ts';
import { median, type Report } from './measurement.ts';

const GUESTS = 16;
/** Size of kernel and initrd. */
const BYTES = 45 * 1024 * 1024;
/** Throughput of the ROMs of sixteen instances together, with TCG on two cores. */
const PACED_BYTES_PER_S = 2_500_000;
const NEIGHBOUR_S = 8;
const FILES_URL = 'http://169.254.169.254/ganeti/latest/boot/machines';

/** A large BootEnv has this many files of this size. */
const FILES = 20;
const FILE_BYTES = 2048;
const SWAPS = 31;

interface Booting {
  readonly guest: Guest;
  readonly view: InstanceView;
  readonly url: string;
}

/**
 * Measures sixteen guests that fetch kernel and initrd at once, at full speed and at a ROM's pace,
 * while another guest reads its metadata.
 */
export async function measureManyBoots(report: Report): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const lab = stack.use(await ChannelLab.create());
  const folder = await mkdtemp(join(tmpdir(), 'gnt-many-boots-'));
  stack.defer(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, 'big'), '');
  await truncate(join(folder, 'big'), BYTES);
  const tree = folderTree(folder);
  const content = await startContentServer({
    ...{ socketPath: lab.contentSocket, gid: METAD_UID, logger: silentLogger, clock: systemClock },
    content: {
      openImage: async () => undefined,
      openRelay: async () => ({ kind: 'refusal', status: 404, reason: 'no relay' }),
      openPackage: async () => undefined,
      openMirror: async () => undefined,
      issueToken: async () => ({ kind: 'refused', status: 403, reason: 'no identity' }),
      findService: async () => undefined,
      findBootTree: async () => tree,
    },
  });
  stack.defer(() => content.close());
  const booting: Booting[] = [];
  for (let number = 1; number <= GUESTS; number += 1) booting.push(await addGuest(lab, number));
  const neighbour = await addGuest(lab, GUESTS + 1);

  const [first] = booting;
  if (!first) throw new Error('no guest');
  await measureSwap(lab, first, report);
  await fetchTree(first);
  const alone = await fetchTree(first);
  const p99Alone = await readP99(neighbour);
  const kept = await memoryOf(lab, () => Promise.all(booting.map((each) => fetchTree(each))));
  report({
    name: `${GUESTS} boots at once: the slowest`,
    value: Math.max(...kept.result),
    unit: 's',
    compared_with: { name: 'one alone', value: alone },
  });
  report({
    name: `${GUESTS} boots at once: more memory in metad`,
    value: kept.moreBytes / 2 ** 20,
    unit: 'MiB',
    compared_with: null,
  });
  const paced = Promise.all(booting.map((each) => fetchTree(each, PACED_BYTES_PER_S)));
  const [p99] = await Promise.all([readP99(neighbour), paced]);
  report({
    name: `${GUESTS} boots at a ROM's pace: p99 of a neighbour`,
    value: p99,
    unit: 'ms',
    compared_with: { name: 'without them', value: p99Alone },
  });
}

async function addGuest(lab: ChannelLab, number: number): Promise<Booting> {
  const mac = `52:54:00:e1:a4:${(0x40 + number).toString(16)}`;
  const channel = { device: `gnt.com.${number}`, mac, ip: `169.254.1.${number}`, hopLimit: 1 };
  const guest = await lab.addGuest(channel);
  const uuid = randomUUID();
  const view: InstanceView = exampleView({
    ...{ uuid, instanceId: randomUUID(), name: `guest${number}.example.com`, channel },
    nics: [{ mac, communication: true }],
    limits: { requestsPerSecond: 1e9, burst: 1e9, connections: 64 },
  });
  const { status } = await lab.put({ ...view, boot: bootOf(view, '#!ipxe\n') });
  if (status !== 204) throw new Error(`metad refuses the view of guest ${number}`);
  return { guest, view, url: `${FILES_URL}/${uuid}/boot/big` };
}

/** Measures the time until a guest sees rendered files, all at once. */
async function measureSwap(
  lab: ChannelLab,
  { guest, view }: Booting,
  report: Report,
): Promise<void> {
  const times: number[] = [];
  for (let round = 1; round <= SWAPS; round += 1) {
    const text = `${round}\n${'d'.repeat(FILE_BYTES)}`;
    const names = Array.from({ length: FILES }, (_, index) => `file${index}`);
    const files = Object.fromEntries(names.map((name) => [name, text]));
    const boot = bootOf(view, '#!ipxe\n', files);
    const startedAt = performance.now();
    const { status } = await lab.put({ ...view, revision: round + 1, boot });
    times.push(performance.now() - startedAt);
    const seen = await guest.run('curl', '-sf', `${FILES_URL}/${view.uuid}/file${FILES - 1}`);
    if (status !== 204 || seen !== text) throw new Error('a guest sees what was there before');
  }
  const name = `${FILES} rendered files are seen by a guest`;
  report({ name, value: median(times), unit: 'ms', compared_with: null });
}

/** @returns seconds */
async function fetchTree({ guest, url }: Booting, bytesPerS?: number): Promise<number> {
  const pace = bytesPerS === undefined ? [] : ['--limit-rate', String(bytesPerS)];
  const wanted = ['-o', '/dev/null', '-w', '%{size_download} %{time_total}'];
  const said = await guest.run('curl', '-sf', ...pace, ...wanted, url);
  const [size, seconds] = said.split(' ').map(Number);
  if (size !== BYTES) throw new Error(`a guest got ${size} bytes`);
  return seconds ?? Number.NaN;
}

/** @returns milliseconds */
async function readP99({ guest }: Booting): Promise<number> {
  const url = 'http://169.254.169.254/ganeti/latest/os/parameters.json';
  const options = ['-t', '1', '-c', '1', '-d', `${NEIGHBOUR_S}s`, '--latency'];
  const output = await guest.run('wrk', ...options, url);
  const [, value, unit] = /99%\s+([\d.]+)(us|ms|s)/.exec(output) ?? [];
  return Number(value) * (unit === 'us' ? 0.001 : unit === 's' ? 1000 : 1);
}

/** Returns the peak memory of metad during `run`, relative to its memory before. */
async function memoryOf<Result>(
  { metadPid }: ChannelLab,
  run: () => Promise<Result>,
): Promise<{ readonly result: Result; readonly moreBytes: number }> {
  const readStatus = async (field: string): Promise<number> => {
    const text = await readFile(`/proc/${metadPid}/status`, 'utf8');
    return Number(new RegExp(`${field}:\\s+(\\d+)`).exec(text)?.[1]) * 1024;
  };
  // Resets VmHWM (proc(5)).
  await writeFile(`/proc/${metadPid}/clear_refs`, '5');
  const before = await readStatus('VmRSS');
  const result = await run();
  return { result, moreBytes: (await readStatus('VmHWM')) - before };
}
