import type { DoctorReport } from '#shared/contract/api.ts';
import type { Check, NodeParts } from './check.ts';
import { checkAppliances } from './examine-appliances.ts';
import { checkBoots } from './examine-boots.ts';
import {
  checkMetad,
  checkNamespace,
  checkNftables,
  checkOwnMetadataAddress,
} from './examine-channel.ts';
import { checkCertificates } from './examine-certificates.ts';
import { checkClouds } from './examine-clouds.ts';
import { checkBuildPackages, checkPackages } from './examine-commands.ts';
import { checkAccelerator, checkTun } from './examine-devices.ts';
import { checkDataLinks } from './examine-data-links.ts';
import { checkDisks } from './examine-disks.ts';
import { examineFirmware } from './examine-firmware.ts';
import { checkIdentity } from './examine-identity.ts';
import { checkIsolation } from './examine-isolation.ts';
import { checkMembership, checkOrphans } from './examine-membership.ts';
import { checkNetworks } from './examine-networks.ts';
import { checkRelays } from './examine-relays.ts';
import { checkSecrecy } from './examine-secrecy.ts';
import { checkSecrets } from './examine-secrets.ts';
import { checkFreeDisk } from './examine-space.ts';
import { checkStoreReach } from './examine-store-reach.ts';
import { checkRecords, checkRenewal, checkRisks, checkStore } from './examine-store.ts';

/** The order of the report. */
const CHECKS: readonly Check[] = [
  checkPackages,
  checkBuildPackages,
  checkTun,
  checkAccelerator,
  checkNamespace,
  checkNftables,
  checkFreeDisk,
  examineFirmware,
  checkOwnMetadataAddress,
  checkMetad,
  checkOrphans,
  checkMembership,
  checkStore,
  checkRisks,
  checkRecords,
  checkRenewal,
  checkBoots,
  checkSecrets,
  checkAppliances,
  checkIsolation,
  checkStoreReach,
  checkDataLinks,
  checkDisks,
  checkNetworks,
  checkSecrecy,
  checkCertificates,
  checkIdentity,
  checkClouds,
  checkRelays,
];

export async function examineHost(parts: NodeParts): Promise<DoctorReport> {
  const findings = (await Promise.all(CHECKS.map(async (check) => check(parts)))).flat();
  return { ok: findings.every(({ level }) => level !== 'error'), findings };
}
