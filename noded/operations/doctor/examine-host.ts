import { describeRemoval, OFFLINE_HINT, REJOIN_HINT } from '../../cluster/membership/membership.ts';
import { open } from 'node:fs/promises';
import { z } from 'zod';
import type { ApplianceUsers } from '#shared/contract/appliance-choice.ts';
import type { DoctorFinding, DoctorReport, Orphan } from '#shared/contract/api.ts';
import { SERVICE_IPV4 } from '#shared/contract/service-address.ts';
import { isAppError, messageOf, systemCodeOf } from '#shared/errors/app-error.ts';
import { run } from '#shared/process/run.ts';
import type { RootPaths } from '#shared/paths/root-paths.ts';
import {
  BASE_COMMANDS,
  BUILD_COMMANDS,
  findMissing,
  type HostCommands,
} from '#shared/process/host-commands.ts';
import type { RecordProblem } from '#shared/store/readable-records.ts';
import type { StoreRisk } from '#shared/store/redis-risks.ts';
import { MIB } from '#shared/units/bytes.ts';
import type { ApplianceFiles } from '../../provision/appliance/appliance-files.ts';
import type { AcceleratorChoice } from '../../vmm/machine.ts';
import { collectSecrecyFacts } from './secrecy-facts.ts';
import { examineStoreReach, type StoreReachFacts } from './examine-store-reach.ts';
import { examineSecrecy } from './examine-secrecy.ts';
import { examineAppliances } from './examine-appliances.ts';
import { type BootFacts, examineBoots } from './examine-boots.ts';
import { examineSecrets, type LostSecretsFacts } from './examine-secrets.ts';
import { type DiskFacts, examineDisks } from './examine-disks.ts';
import type { NatReport } from '../../net/tenant/nat-networks.ts';
import { measurePlaces } from '../../host/file-systems.ts';
import { describeSpace, findLowSpace, groupPlaces, SPACE_HINT } from '../../host/low-space.ts';
import { examineFirmware } from './examine-firmware.ts';
import { examineNetworks } from './examine-networks.ts';
import { examineIsolation, type IsolationFacts } from './examine-isolation.ts';

const neededCommands = {
  'qemu-system-x86_64': 'qemu-system-x86',
  'qemu-img': 'qemu-utils',
  ip: 'iproute2',
  nft: 'nftables',
  setpriv: 'util-linux',
  nsenter: 'util-linux',
  unshare: 'util-linux',
  prlimit: 'util-linux',
  mcopy: 'mtools',
} as const;
/** What only networks need that a node makes itself. */
const networkCommands = { dnsmasq: 'dnsmasq-base' } as const;

/** How many of the records that were set aside are named; the log has them all. */
const MAX_NAMED_RECORDS = 5;
/** What a file system needs that an installation writes to: with less, none works. */
const NEEDED_FREE_BYTES = 256 * MIB;

/** What `ip -j route get` prints. */
const routes = z.array(z.object({ dev: z.string().optional(), gateway: z.string().optional() }));

export interface DoctorDependencies {
  readonly paths: RootPaths;
  readonly applianceFiles: Pick<ApplianceFiles, 'verify'>;
  /** Appliances that somebody names, and who does. */
  readonly appliances: () => Promise<ReadonlyMap<string, ApplianceUsers>>;
  readonly probeAccelerator: () => Promise<AcceleratorChoice>;
  readonly isolation: IsolationFacts;
  readonly storeReach: StoreReachFacts;
  readonly diskFacts: () => Promise<DiskFacts>;
  /** Percent of a file system below which little of it is free; undefined: the usual. */
  readonly lowSpacePercent: () => Promise<number | undefined>;
  readonly bootFacts: () => readonly BootFacts[];
  readonly lostSecrets: () => readonly LostSecretsFacts[];
  /** Whether a network is to be made by this node. */
  readonly makesNetworks: () => Promise<boolean>;
  readonly networks: () => NatReport;
  readonly metadPid: () => number | null;
  readonly orphans: () => readonly Orphan[];
  readonly removedAtMs: () => number | null;
  /** Whether it is marked so; what runs is not off. */
  readonly isOffline: () => Promise<boolean>;
  /** The store as people know it, and a question that it answers when it is there. */
  readonly store: {
    readonly description: string;
    readonly ask: () => Promise<unknown>;
    readonly risks: () => Promise<readonly StoreRisk[]>;
    /** Records that were set aside. */
    readonly problems: () => readonly RecordProblem[];
    /** Who exchanges the cluster's key, and how far that is. */
    readonly renewal: () => Promise<string | null>;
  };
}

/**
 * Looks at everything that an installation needs of this host, and says for each finding what to
 * do.
 */
export async function examineHost(dependencies: DoctorDependencies): Promise<DoctorReport> {
  const findings = await Promise.all([
    checkCommands('packages', neededCommands, 'error'),
    checkCommands('build-packages', { ...BUILD_COMMANDS, ...BASE_COMMANDS }, 'warning'),
    checkTun(),
    checkAccelerator(dependencies.probeAccelerator),
    checkNamespace(dependencies.paths.networkNamespace),
    checkNftables(dependencies.paths.networkNamespace),
    checkFreeDisk(dependencies),
    Promise.resolve(examineFirmware()),
    checkOwnMetadataAddress(),
    checkMetad(dependencies.metadPid()),
    Promise.resolve(checkOrphans(dependencies.orphans())),
    checkMembership(dependencies),
    checkStore(dependencies.store),
    checkRisks(dependencies.store),
    Promise.resolve(checkRecords(dependencies.store.problems())),
    checkRenewal(dependencies.store),
    Promise.resolve(examineBoots(dependencies.bootFacts())),
    Promise.resolve(examineSecrets(dependencies.lostSecrets())),
  ]);
  findings.push(
    ...(await examineAppliances(dependencies.applianceFiles, dependencies.appliances)),
    ...examineIsolation(dependencies.isolation),
    ...(await examineStoreReach(dependencies.storeReach)),
    ...(await checkDisks(dependencies.diskFacts)),
    ...((await dependencies.makesNetworks().catch(() => false))
      ? [
          await checkCommands('network-packages', networkCommands, 'error'),
          ...examineNetworks(dependencies.networks(), Date.now()),
        ]
      : []),
    ...examineSecrecy(collectSecrecyFacts(dependencies.metadPid())),
  );
  return { ok: findings.every((finding) => finding.level !== 'error'), findings };
}

function ok(check: string, message: string): DoctorFinding {
  return { check, level: 'ok', message, hint: null };
}

async function checkCommands(
  check: string,
  wanted: HostCommands,
  level: 'error' | 'warning',
): Promise<DoctorFinding> {
  const missing = await findMissing(wanted);
  if (missing === null) return ok(check, `found ${Object.keys(wanted).join(', ')}`);
  return {
    check,
    level,
    message: `missing: ${missing.commands.join(', ')}`,
    hint: missing.remedy,
  };
}

async function checkStore({
  description,
  ask,
}: DoctorDependencies['store']): Promise<DoctorFinding> {
  try {
    await ask();
    return ok('store', `${description} answers`);
  } catch (error) {
    const hint = isAppError(error) ? (error.hint ?? null) : null;
    return { check: 'store', level: 'error', message: messageOf(error), hint };
  }
}

async function checkRisks({ risks }: DoctorDependencies['store']): Promise<DoctorFinding> {
  const check = 'store-risks';
  const found = await risks().catch((error: unknown) => messageOf(error));
  if (typeof found === 'string') {
    const message = `it is unknown whether the store keeps acknowledged writes: ${found}`;
    const hint = 'If Redis runs, allow its user the command INFO: ACL SETUSER USER +info';
    return { check, level: 'warning', message, hint };
  }
  const [worst, ...others] = found.toSorted((a, b) => a.level.localeCompare(b.level));
  if (worst === undefined) return ok(check, 'the store keeps acknowledged writes');
  const message = [worst, ...others].map((risk) => risk.message).join('; ');
  return { check, level: worst.level, message: `the store: ${message}`, hint: worst.hint };
}

async function checkTun(): Promise<DoctorFinding> {
  const check = 'tun';
  try {
    await using device = await open('/dev/net/tun', 'r+');
    const { mode } = await device.stat();
    const octal = (mode & 0o777).toString(8).padStart(4, '0');
    return ok(
      check,
      `/dev/net/tun opens (mode ${octal}; any mode works, QEMU gets open descriptors)`,
    );
  } catch (error) {
    return {
      check,
      level: 'error',
      message: `/dev/net/tun cannot be opened: ${messageOf(error)}`,
      hint:
        systemCodeOf(error) === 'ENOENT'
          ? 'modprobe tun'
          : 'Run noded as root, outside of a container.',
    };
  }
}

async function checkAccelerator(probe: () => Promise<AcceleratorChoice>): Promise<DoctorFinding> {
  const check = 'kvm';
  try {
    const { accelerator, reason } = await probe();
    if (accelerator === 'kvm') return ok(check, reason);
    return {
      check,
      level: 'warning',
      message: `instances run under emulation (TCG), which is slow: ${reason}`,
      hint: 'Enable virtualization in the firmware, or nested virtualization on the host of this machine.',
    };
  } catch (error) {
    return {
      check,
      level: 'error',
      message: messageOf(error),
      hint: 'apt-get install qemu-system-x86',
    };
  }
}

async function checkNamespace(name: string): Promise<DoctorFinding> {
  const check = 'namespace';
  try {
    await run('ip', ['netns', 'exec', name, 'true']);
    return ok(check, `the network namespace ${name} exists`);
  } catch (error) {
    return {
      check,
      level: 'error',
      message: `the network namespace ${name} cannot be entered: ${messageOf(error)}`,
      hint: 'Run noded as root on a kernel with CONFIG_NET_NS. Restart noded to create the namespace again.',
    };
  }
}

async function checkNftables(namespace: string): Promise<DoctorFinding> {
  const check = 'nftables';
  try {
    const { stdout } = await run('ip', ['netns', 'exec', namespace, 'nft', '-j', 'list', 'tables']);
    const isThere = stdout.includes('"table"');
    if (isThere) return ok(check, 'the packet filter of the channel is in place');
    return {
      check,
      level: 'error',
      message: 'the packet filter of the channel is missing',
      hint: 'Restart noded: systemctl restart gnt-noded',
    };
  } catch (error) {
    return {
      check,
      level: 'error',
      message: `nft fails: ${messageOf(error)}`,
      hint: 'apt-get install nftables',
    };
  }
}

async function checkFreeDisk({
  paths,
  lowSpacePercent,
}: Pick<DoctorDependencies, 'paths' | 'lowSpacePercent'>): Promise<DoctorFinding> {
  const check = 'disk';
  const places = await measurePlaces(paths);
  const all = groupPlaces(places);
  const low = findLowSpace(places, await lowSpacePercent());
  const lacking = all.filter(({ freeBytes }) => freeBytes < NEEDED_FREE_BYTES);
  const told = all.filter((one) => [...low, ...lacking].some(({ path }) => path === one.path));
  const message = (told.length === 0 ? all : told).map(describeSpace).join('; ');
  if (told.length === 0) return ok(check, message);
  const level = lacking.length > 0 ? 'error' : 'warning';
  return { check, level, message, hint: SPACE_HINT };
}

/** Nothing where the store, which knows the instances, is away: that is a finding of its own. */
async function checkDisks(facts: () => Promise<DiskFacts>): Promise<readonly DoctorFinding[]> {
  try {
    return examineDisks(await facts());
  } catch (error) {
    if (isAppError(error)) return [];
    throw error;
  }
}

async function checkMembership({
  removedAtMs,
  isOffline,
}: Pick<DoctorDependencies, 'removedAtMs' | 'isOffline'>): Promise<DoctorFinding> {
  const check = 'membership';
  const removed = removedAtMs();
  if (removed !== null)
    return { check, level: 'error', message: describeRemoval(removed), hint: REJOIN_HINT };
  // A store that is away is a finding of its own.
  if (!(await isOffline().catch(() => false)))
    return ok(check, 'this node is a member of its cluster');
  const message =
    'this node is marked offline although its daemon runs: its instances keep running, but other nodes ignore it and its jobs are refused';
  return { check, level: 'warning', message, hint: OFFLINE_HINT };
}

function checkOrphans(orphans: readonly Orphan[]): DoctorFinding {
  if (orphans.length === 0) return ok('orphans', 'every running instance has a record');
  const named = orphans.map(({ name, uuid, pid }) => `${name} (${uuid}, pid ${pid})`);
  return {
    check: 'orphans',
    level: 'warning',
    message: `orphaned instances keep running, untouched: ${named.join(', ')}`,
    hint: 'Adopt one (gnt-instance adopt NAME), or stop it and remove its disks (gnt-instance remove NAME). A record restored with the store is matched within seconds.',
  };
}

function checkRecords(problems: readonly RecordProblem[]): DoctorFinding {
  if (problems.length === 0) return ok('records', 'every record of the store is readable');
  const named = problems.map(({ collection, id, reason }) => `${collection}/${id} (${reason})`);
  return {
    check: 'records',
    level: 'warning',
    message: `${problems.length} record(s) set aside: ${named.slice(0, MAX_NAMED_RECORDS).join(', ')}`,
    hint: 'Restore the store from a backup, or start the release that wrote these records. Their objects stay untouched. After a deliberate restore, run on each node: gnt-cluster accept-records',
  };
}

async function checkRenewal({ renewal }: DoctorDependencies['store']): Promise<DoctorFinding> {
  const check = 'cluster-key';
  try {
    const underWay = await renewal();
    if (underWay === null) return ok(check, 'no renewal of the cluster key is pending');
    return {
      check,
      level: 'warning',
      message: underWay,
      hint: 'It continues when all nodes answer. Leave a lost node out: gnt-cluster renew-crypto --skip NODE',
    };
  } catch (error) {
    return { check, level: 'warning', message: messageOf(error), hint: null };
  }
}

async function checkOwnMetadataAddress(): Promise<DoctorFinding> {
  const check = 'link-local';
  try {
    const { stdout } = await run('ip', ['-j', 'route', 'get', SERVICE_IPV4]);
    const [route] = routes.parse(JSON.parse(stdout));
    const via = route?.gateway === undefined ? '' : ` via ${route.gateway}`;
    return ok(
      check,
      `this host's own route to ${SERVICE_IPV4} is ${route?.dev ?? 'no device'}${via}; the channel uses a separate namespace, so neither disturbs the other`,
    );
  } catch {
    return ok(check, `this host has no route to ${SERVICE_IPV4} of its own`);
  }
}

async function checkMetad(pid: number | null): Promise<DoctorFinding> {
  if (pid !== null) return ok('metad', `the metadata daemon runs (pid ${pid})`);
  return {
    check: 'metad',
    level: 'error',
    message: 'the metadata daemon is not running',
    hint: 'gnt-noded restarts it automatically. var/log/gnt/metad.log shows why it ended.',
  };
}
