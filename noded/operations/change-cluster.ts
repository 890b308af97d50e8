import { X509Certificate } from 'node:crypto';
import type { ClusterRecord, OsSettings } from '#shared/contract/api.ts';
import { type ImageKey, type ImageKeys, MAX_IMAGE_KEYS } from '#shared/contract/image-keys.ts';
import type { OpcodeOf } from '#shared/contract/opcode.ts';
import { splitOsName } from '#shared/contract/os-name.ts';
import { MAX_MIRRORS } from '#shared/contract/primitives.ts';
import { AppError, isAppError } from '#shared/errors/app-error.ts';
import { claimSharedFolder } from '../storage/shared-folder.ts';
import {
  refuseForeign,
  refuseScanned,
  requireGroup,
} from '../storage/drivers/volumes/check-group.ts';
import { findPools, requirePool } from '../storage/drivers/volumes/thin-pools.ts';
import { findOwn } from '../storage/drivers/volumes/volume-names.ts';
import type { FoundElsewhere } from '../cluster/placement/find-elsewhere.ts';
import { refuseUnusableRelays } from './refuse-relays.ts';
import { mergeIdentity } from '../instances/identity/merge-identity.ts';
import {
  mergeChanges,
  mergeSharedParameters,
  mergeTags,
} from '../instances/record/merge-changes.ts';
import { refuseDuplicateParameters } from '../instances/record/plan-record.ts';
import type { JobContext, JobHandler } from '../jobs/job-handler.ts';
import { digestDefinition } from '../provision/os/definition-content.ts';
import { parseOsName } from '../provision/os/os-name.ts';
import type { ClusterRepository } from '../records/cluster-repository.ts';
import { parseImageKey } from '../content/signatures/parse-image-key.ts';
import type { AskedVolumes, OperationDependencies } from './operation-dependencies.ts';
import { refuseBlacklisted, selectOs } from './os-policy.ts';
import { refuseUnusableServices } from './refuse-services.ts';
import { GIVEN, requireAppliance } from './require-appliance.ts';

export function modifyOsHandler(
  dependencies: OperationDependencies,
): JobHandler<OpcodeOf<'OS_SET_PARAMS'>> {
  return {
    // One lock for all variants of an OS: trust in the OS covers its variants.
    prepare: async (opcode) => {
      const names = [
        ...Object.keys(opcode.osParameters),
        ...Object.keys(opcode.osParametersPrivate),
      ];
      const { trusted, hidden, blacklisted, safeInstall, appliance } = opcode;
      const hasFlag = [trusted, hidden, blacklisted, safeInstall, appliance].some(
        (flag) => flag !== undefined,
      );
      if (names.length === 0 && !hasFlag) {
        throw new AppError('USAGE', 'no change was given', {
          hint: 'Give --trusted, --safe-install, --appliance, --hidden, --blacklisted, -O or --os-parameters-private',
        });
      }
      refuseDuplicateParameters(opcode);
      await requireNamed(opcode, dependencies);
      // An unreadable record is reported before a missing definition: it is the more useful error.
      await dependencies.clusters.loadOs(opcode.name);
      const found = opcode.trusted === true ? await findContent(opcode.name, dependencies) : null;
      return async (context) => {
        const { clusters, clock } = dependencies;
        const trust = found === null ? undefined : { digest: found.digest, atMs: clock.now() };
        const change = (settings: OsSettings): OsSettings =>
          applyOsChanges(settings, opcode, trust);
        if (opcode.trusted === false) await revoke(opcode.name, change, clusters, context);
        else await clusters.updateOs(opcode.name, change);
        if (found !== null) tellTrust(opcode.name, found, context);
        return { name: opcode.name, ...(found !== null && { digest: found.digest }) };
      };
    },
  };
}

/**
 * Returns the content to trust: this node's, or another node's if this node has none.
 * @throws AppError OS_NOT_FOUND, OS_INVALID
 */
async function findContent(
  name: string,
  { osRegistry, findElsewhere, nodeName }: OperationDependencies,
): Promise<FoundElsewhere> {
  const { name: osName } = splitOsName(name);
  const diagnosis = await osRegistry.diagnose(osName);
  const found =
    diagnosis === undefined
      ? await findElsewhere(osName)
      : { node: nodeName, digest: await digestDefinition(diagnosis.path) };
  if (found !== null) return found;
  throw new AppError('OS_NOT_FOUND', `no node has an OS definition '${osName}' to trust`, {
    hint: 'Trust applies to the content: install the definition first. List them: gnt-os list',
  });
}

function tellTrust(name: string, found: FoundElsewhere, { report }: JobContext): void {
  report.log(`OS ${name} is trusted in its present content on node ${found.node}: ${found.digest}`);
}

/** Revokes trust: in an OS together with all its variants, or in one variant. */
async function revoke(
  name: string,
  change: (settings: OsSettings) => OsSettings,
  clusters: ClusterRepository,
  { report }: JobContext,
): Promise<void> {
  const { name: osName } = splitOsName(name);
  if (osName === name) {
    await clusters.updateWholeOs(name, (settings) =>
      settings.name === name ? change(settings) : withoutTrust(settings),
    );
    return;
  }
  await clusters.updateOs(name, change);
  if (!(await clusters.loadOs(osName)).trusted) return;
  report.log(
    `OS ${osName} is trusted with all its variants, including ${name}. Revoke it with gnt-os modify --trusted no ${osName}`,
    'warn',
  );
}

function withoutTrust(settings: OsSettings): OsSettings {
  return { ...settings, trusted: false, trust: undefined };
}

/**
 * Returns the changed settings. A parameter that is given in one visibility leaves the other. Pure.
 * @param trust the content that is trusted from now on
 */
export function applyOsChanges(
  settings: OsSettings,
  opcode: OpcodeOf<'OS_SET_PARAMS'>,
  trust?: OsSettings['trust'],
): OsSettings {
  return {
    ...settings,
    trusted: opcode.trusted ?? settings.trusted,
    trust: opcode.trusted === undefined ? settings.trust : trust,
    ...(opcode.trusted !== undefined && { isDistrusted: !opcode.trusted }),
    hidden: opcode.hidden ?? settings.hidden,
    blacklisted: opcode.blacklisted ?? settings.blacklisted,
    safeInstall: opcode.safeInstall ?? settings.safeInstall,
    ...(opcode.appliance !== undefined && { appliance: opcode.appliance ?? undefined }),
    ...mergeSharedParameters(settings, opcode),
  };
}

function refuseTooManyMirrors(mirrors: Readonly<Record<string, string>>): void {
  if (Object.keys(mirrors).length <= MAX_MIRRORS) return;
  throw new AppError('VALIDATION', `more than ${MAX_MIRRORS} package mirrors`, {
    hint: 'Remove mirrors that are not needed.',
  });
}

/** Parses the given keys; `null` removes a key. @throws AppError VALIDATION */
function parseImageKeys(
  given: Readonly<Record<string, string | null>>,
): Record<string, ImageKey | null> {
  const parsed = Object.entries(given).map(
    ([name, text]) => [name, text === null ? null : parseImageKey(name, text)] as const,
  );
  return Object.fromEntries(parsed);
}

function refuseTooManyKeys(keys: ImageKeys): void {
  if (Object.keys(keys).length <= MAX_IMAGE_KEYS) return;
  throw new AppError(
    'VALIDATION',
    `more than ${MAX_IMAGE_KEYS} signing keys for images and packages`,
    {
      hint: 'Remove keys that are not needed: gnt-cluster modify --image-key NAME=',
    },
  );
}

/**
 * Refuses to change the shared folder while it holds disks: they would stay behind.
 * @throws AppError CONFLICT
 */
async function refuseSharedInUse(
  wanted: string | null,
  { clusters, instances }: OperationDependencies,
): Promise<void> {
  const { sharedFileStorageDir: there } = await clusters.load();
  if (there === undefined || there === wanted) return;
  const names = (await instances.list())
    .filter((instance) => instance.diskTemplate === 'sharedfile')
    .map(({ name }) => name);
  const [first] = names;
  if (first === undefined) return;
  throw new AppError('CONFLICT', `${names.length} instance(s) have disks in ${there}`, {
    details: { path: there, instances: names },
    hint: `Remove them first: ${first}${names.length > 1 ? ', …' : ''}`,
  });
}

export function modifyClusterHandler(
  dependencies: OperationDependencies,
): JobHandler<OpcodeOf<'CLUSTER_SET_PARAMS'>> {
  return {
    prepare: async (opcode) => {
      const {
        exposeServices,
        packageMirrors = {},
        imageKeys = {},
        relays = {},
      } = await dependencies.clusters.load();
      if (opcode.imageCa != null) requireCertificates(opcode.imageCa);
      const keyChanges = parseImageKeys(opcode.imageKeys ?? {});
      refuseTooManyKeys(mergeChanges(imageKeys, keyChanges));
      refuseUnusableServices(mergeChanges(exposeServices, opcode.exposeServices));
      refuseUnusableRelays(mergeChanges(relays, opcode.relays ?? {}));
      refuseTooManyMirrors(mergeChanges(packageMirrors, opcode.packageMirrors));
      await requireNamed(opcode, dependencies);
      await requireDefaultNetwork(opcode.launchDefaults?.net, dependencies);
      if (opcode.defaultOs != null) await requireOs(opcode.defaultOs, dependencies);
      const { sharedFileStorageDir: shared } = opcode;
      if (shared !== undefined) await refuseSharedInUse(shared, dependencies);
      if (opcode.vgName != null)
        await requireVolumePlace(opcode.vgName, dependencies.lvm, dependencies);
      if (opcode.zfsPool != null)
        await requireVolumePlace(opcode.zfsPool, dependencies.zfs, dependencies);
      const isIdentityOn = opcode.identity?.policy !== undefined && opcode.identity.policy !== 'no';
      return async () => {
        const { uuid } = await dependencies.clusters.load();
        if (shared != null) await claimSharedFolder(shared, uuid);
        // Before the setting, so that no instance is refused for lack of keys.
        if (isIdentityOn) await dependencies.clusters.ensureIdentityKeys();
        await dependencies.clusters.update((cluster) => ({
          ...cluster,
          installTimeoutS: opcode.installTimeoutS ?? cluster.installTimeoutS,
          hostScripts: opcode.hostScripts ?? cluster.hostScripts,
          ...(opcode.appliance !== undefined && { appliance: opcode.appliance ?? undefined }),
          ...(opcode.defaultOs !== undefined && { defaultOs: opcode.defaultOs ?? undefined }),
          ...(opcode.imageCa !== undefined && { imageCa: opcode.imageCa ?? undefined }),
          ...(opcode.launchDefaults && {
            launchDefaults: withoutNulls({ ...cluster.launchDefaults, ...opcode.launchDefaults }),
          }),
          ...chosen({
            maxImageBytes: opcode.maxImageBytes ?? cluster.maxImageBytes,
            downloadTimeoutS: opcode.downloadTimeoutS ?? cluster.downloadTimeoutS,
            minDownloadRate: opcode.minDownloadRate ?? cluster.minDownloadRate,
            lowSpacePercent: opcode.lowSpacePercent ?? cluster.lowSpacePercent,
            dataRate: opcode.dataRate ?? cluster.dataRate,
          }),
          ...(shared !== undefined && { sharedFileStorageDir: shared ?? undefined }),
          ...(opcode.vgName !== undefined && { vgName: opcode.vgName ?? undefined }),
          ...(opcode.zfsPool !== undefined && { zfsPool: opcode.zfsPool ?? undefined }),
          ...(opcode.remoteFolders && { remoteFolders: opcode.remoteFolders }),
          ...(opcode.remoteHosts && { remoteHosts: opcode.remoteHosts }),
          ...(opcode.confineGuests !== undefined && { confineGuests: opcode.confineGuests }),
          ...(opcode.guestNetworks && { guestNetworks: opcode.guestNetworks }),
          exposeServices: mergeChanges(cluster.exposeServices, opcode.exposeServices),
          packageMirrors: mergeChanges(cluster.packageMirrors ?? {}, opcode.packageMirrors),
          imageKeys: mergeChanges(cluster.imageKeys ?? {}, keyChanges),
          ...(opcode.relays && { relays: mergeChanges(cluster.relays ?? {}, opcode.relays) }),
          ...(opcode.identity && { identity: mergeIdentity(cluster.identity, opcode.identity) }),
          tags: mergeTags(cluster.tags ?? [], opcode),
        }));
        if (Object.keys(opcode.exposeServices).length > 0) await dependencies.services.publish();
        return {};
      };
    },
  };
}

/** @throws AppError HOST_PREREQUISITE, CONFLICT */
async function requireVolumePlace(
  named: string,
  system: AskedVolumes,
  { nodeName, owns }: OperationDependencies,
): Promise<void> {
  const { errors } = system;
  const place = system.parsePlace(named);
  requireGroup(place.group, await system.listGroups(), errors);
  refuseScanned(await system.isScanned(), errors);
  const volumes = await system.listVolumes();
  refuseForeign(new Set([place.group]), findOwn(volumes), { nodeName, owns }, errors);
  if (place.pool !== undefined) requirePool(place, findPools(volumes), errors);
}

const PEM_CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** Refuses text that is not a certificate: the next download would ignore it silently. */
function requireCertificates(pem: string): void {
  const found = pem.match(PEM_CERTIFICATE) ?? [];
  const isRest = pem.replaceAll(PEM_CERTIFICATE, '').includes('-----BEGIN');
  const hint =
    'Write --image-ca @FILE with PEM certificates (-----BEGIN CERTIFICATE-----) and no private key.';
  if (found.length === 0 || isRest)
    throw new AppError('VALIDATION', '--image-ca: expected certificates in PEM', { hint });
  for (const [index, certificate] of found.entries()) {
    try {
      new X509Certificate(certificate);
    } catch (error) {
      throw new AppError('VALIDATION', `--image-ca: certificate ${index + 1} cannot be parsed`, {
        ...{ hint, cause: error },
      });
    }
  }
}

/** @throws AppError NOT_FOUND */
async function requireDefaultNetwork(
  net: string | null | undefined,
  { clusters }: Pick<OperationDependencies, 'clusters'>,
): Promise<void> {
  const [, name] = /(?:^|,)network=([^,]*)/.exec(net ?? '') ?? [];
  if (name !== undefined) await clusters.loadNetwork(name);
}

/** Checks the named appliance. Unsetting one needs no appliance on this node. */
async function requireNamed(
  { appliance }: { readonly appliance?: string | null | undefined },
  dependencies: OperationDependencies,
): Promise<void> {
  if (appliance != null) await requireAppliance({ name: appliance, source: GIVEN }, dependencies);
}

/** Requires an OS on this node or another one. @throws AppError OS_* */
async function requireOs(osType: string, dependencies: OperationDependencies): Promise<void> {
  try {
    refuseBlacklisted(osType, (await selectOs(osType, dependencies)).policy);
  } catch (error) {
    if (!isAppError(error, 'OS_NOT_FOUND')) throw error;
    if ((await dependencies.findElsewhere(parseOsName(osType).name)) === null) throw error;
  }
}

/** Removes unset keys, so that the record looks as if they had never been set. */
function withoutNulls(
  given: NonNullable<OpcodeOf<'CLUSTER_SET_PARAMS'>['launchDefaults']>,
): NonNullable<ClusterRecord['launchDefaults']> {
  const { diskBytes, memoryMiB, vcpus, net } = given;
  return {
    ...(diskBytes != null && { diskBytes }),
    ...(memoryMiB != null && { memoryMiB }),
    ...(vcpus != null && { vcpus }),
    ...(net != null && { net }),
  };
}

/** Leaves out values that were never set: these follow the defaults of the programs. */
function chosen<Key extends string>(
  values: Readonly<Record<Key, number | undefined>>,
): Partial<Record<Key, number>> {
  const given = Object.entries(values).filter(([, value]) => value !== undefined);
  // The same keys and values, without the undefined ones.
  return Object.fromEntries(given) as Partial<Record<Key, number>>;
}
