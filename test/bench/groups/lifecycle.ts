import { readdir, readFile, stat } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { MetadEvent } from '#shared/contract/metad-control.ts';
import { ChannelLab } from '../../metad/support/channel-lab.ts';
import { CloudInitGuest, NOCLOUD } from '../../metad/support/cloud-init-guest.ts';
import { eventsUntil } from '../../metad/support/control-events.ts';
import { GuestSystem } from '../../metad/support/guest-system.ts';
import { lifecycleOf, scriptOf } from '../../metad/support/lifecycle-fixture.ts';
import { exampleView } from '../../metad/support/view-fixture.ts';
import { measureGuestsWord } from '../support/guests-word.ts';
import { median } from '../support/measurement.ts';
import type { Report } from '../support/measurement.ts';
import { measureWaitingAgents } from '../support/waiting-agents.ts';

const HOME = '/var/lib/rightlink';
const SCRIPTS = 10;
/** Both sides alternate, because the load of the host varies. */
const ROUNDS = 9;
/** An idle agent should use no CPU for this time. */
const IDLE_MS = 10_000;
const EMPTY = Array.from({ length: SCRIPTS }, (_, at) => scriptOf(`${at + 10}-empty`, ':'));

/** Measures run lists in the guest, between guest and host, and with many waiting guests. */
export async function measure(report: Report): Promise<void> {
  await measureAgent(report);
  await measureGuestsWord(report);
  await measureWaitingAgents(report);
}

async function measureAgent(report: Report): Promise<void> {
  await using lab = await ChannelLab.create();
  const base = exampleView();
  const view = { ...base, nics: base.nics.filter((nic) => nic.communication), vendorData: null };
  const guest = await lab.addGuest({ ...view.channel, isUnconfigured: true });
  await lab.put(view);
  await using cloudInit = await CloudInitGuest.create(guest.namespace);
  await cloudInit.boot(NOCLOUD);
  await guest.run('ip', 'addr', 'flush', 'dev', 'eth0');
  await guest.run('ip', 'link', 'set', 'eth0', 'up');
  await guest.run('ip', 'addr', 'add', `${view.channel.ip}/16`, 'dev', 'eth0');
  await using system = await GuestSystem.create(guest.namespace, {
    ...{ shell: 'dash', downloader: 'GNU wget' },
  });
  const path = `/v1/instances/${view.uuid}/tree/ganeti/latest/guest/agent`;
  const times: number[] = [];
  const theirs: number[] = [];
  const requests: number[] = [];
  for (let round = 0; round <= ROUNDS; round += 1) {
    const boot = round === 0 ? [] : EMPTY;
    const lifecycle = lifecycleOf({ lists: { boot, operational: [], decommission: [] } });
    await lab.control('DELETE', `/v1/instances/${view.uuid}`);
    await lab.put({ ...view, revision: round + 2, lifecycle });
    if (round === 0) await system.write('agent', (await lab.control('GET', path)).body.toString());
    const before = await countRequests(lab);
    const since = await lastSequence(lab);
    const startedAt = performance.now();
    await system.boot(`mkdir -p ${HOME} && cp /var/lib/agent ${HOME}/ && sh ${HOME}/agent run`);
    await eventsUntil(lab, since, isUp);
    if (round > 0) times.push(performance.now() - startedAt);
    if (round > 0) theirs.push(await cloudInit.timePerBoot(SCRIPTS));
    requests.push((await countRequests(lab)) - before);
  }
  report({
    ...{ name: `${SCRIPTS} empty scripts`, value: median(times), unit: 'ms' },
    compared_with: { name: 'cloud-init’s per-boot folder', value: median(theirs) },
  });
  const [none = 0, ...some] = requests;
  report({
    ...{ name: 'requests a script, getting it included', unit: '' },
    value: (median(some) - none) / SCRIPTS,
    compared_with: null,
  });
  await reportIdle(guest.namespace, report);
}

function isUp(events: readonly MetadEvent[]): boolean {
  return events.some(
    ({ event }) => event.type === 'lifecycle' && event.event.type === 'operational',
  );
}

async function lastSequence(lab: ChannelLab): Promise<number> {
  const { body } = await lab.control('GET', '/v1/status');
  return (JSON.parse(body.toString()) as { lastSequence: number }).lastSequence;
}

async function countRequests(lab: ChannelLab): Promise<number> {
  const text = (await lab.control('GET', '/metrics')).body.toString();
  const counts = [...text.matchAll(/^gnt_metad_requests_total\{[^}]*\} (\d+)$/gm)];
  return counts.reduce((sum, [, count]) => sum + Number(count), 0);
}

/** Measures CPU time and memory of a waiting agent's processes. */
async function reportIdle(namespace: string, report: Report): Promise<void> {
  await sleep(2000); // The process that sent the last output ends.
  const agents = await agentsIn(namespace);
  const before = await processorMs(agents);
  await sleep(IDLE_MS);
  report({
    ...{ name: `an idle agent’s processor time in ${IDLE_MS / 1000} s`, unit: 'ms' },
    ...{ value: (await processorMs(agents)) - before, compared_with: null },
  });
  const kibibytes = await Promise.all(agents.map(proportionalKib));
  report({
    name: `memory of an idle agent, its ${agents.length} processes`,
    value: kibibytes.reduce((sum, one) => sum + one, 0) / 1024,
    unit: 'MiB',
    compared_with: { name: 'RightLink', value: 13 },
  });
}

/** Returns the agent and the downloader in which it waits. */
async function agentsIn(namespace: string): Promise<readonly number[]> {
  const inode = async (path: string): Promise<number> => (await stat(path)).ino;
  const wanted = await inode(`/run/netns/${namespace}`);
  const found: number[] = [];
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const isThere = (await inode(`/proc/${name}/ns/net`).catch(() => 0)) === wanted;
    const command = isThere ? await readFile(`/proc/${name}/cmdline`, 'utf8').catch(() => '') : '';
    if (command.startsWith('wget\0') || command.startsWith(`sh\0${HOME}/agent\0run`))
      found.push(Number(name));
  }
  return found;
}

async function processorMs(pids: readonly number[]): Promise<number> {
  const spent = await Promise.all(
    pids.map(async (pid) =>
      Number((await readFile(`/proc/${pid}/schedstat`, 'utf8')).split(' ')[0]),
    ),
  );
  return spent.reduce((sum, one) => sum + one, 0) / 1e6;
}

/** PSS: each process counts its share of shared pages. */
async function proportionalKib(pid: number): Promise<number> {
  const rollup = await readFile(`/proc/${pid}/smaps_rollup`, 'utf8');
  return Number(/^Pss:\s+(\d+)/m.exec(rollup)?.[1]);
}
