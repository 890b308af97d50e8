import { classifyCloudDocument } from '#shared/contract/cloud-document.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { AppError } from '#shared/errors/app-error.ts';

type Documents = Pick<InstanceRecord, 'userData' | 'vendorData' | 'dialects' | 'hvparams'>;
interface Given extends Partial<Pick<Documents, 'userData' | 'vendorData' | 'dialects'>> {
  readonly hvparams?: { readonly boot_report?: unknown };
}

/**
 * Documents of which nothing would be left in the guest: vendor data, and user data behind which
 * `boot_report=user-data` has a part of ours, go as parts of one MIME message, and of that
 * cloud-init alone reads anything, and only what it knows. Pure.
 * @param given what of them is new: what is stored already stands in the way of nothing else
 * @throws AppError VALIDATION with the option's name
 */
export function refuseLostDocuments(instance: Documents, given: Given): void {
  if (given.vendorData != null) {
    const why = whyLost(given.vendorData);
    if (why !== null) {
      throw new AppError('VALIDATION', `--vendor-data: ${why}, and nothing else reads it`, {
        hint: 'give a #cloud-config, a script with #!, or a MIME message in UTF-8',
      });
    }
  }
  const { userData, dialects, hvparams } = instance;
  const isGiven = given.userData != null || given.dialects || given.hvparams?.boot_report;
  const isJoined = hvparams.boot_report === 'user-data' && dialects.includes('ganeti');
  if (!isGiven || !isJoined || userData === null) return;
  const why = whyLost(userData);
  if (why === null) return;
  throw new AppError('VALIDATION', `--user-data does not go with boot_report=user-data: ${why}`, {
    hint: 'the part that tells the boot would make it a MIME message, which only cloud-init reads; give -H boot_report=no, and it is served as it is',
  });
}

/** Why cloud-init carries nothing of it out, in words; null when it does. */
function whyLost(base64: string): string | null {
  const found = classifyCloudDocument(Buffer.from(base64, 'base64'));
  return found.kind === 'foreign' ? found.why : null;
}
