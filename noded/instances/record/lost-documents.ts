import {
  AGENT_TAG_PREFIX,
  AGENT_TYPE_TAG,
  parseAgentTags,
  wrongAgentTag,
} from '#shared/contract/agent-tags.ts';
import { classifyCloudDocument } from '#shared/contract/cloud-document.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { AppError } from '#shared/errors/app-error.ts';

type Documents = Pick<InstanceRecord, 'userData' | 'vendorData' | 'dialects' | 'hvparams' | 'tags'>;
interface Given extends Partial<Pick<Documents, 'userData' | 'vendorData' | 'dialects' | 'tags'>> {
  readonly hvparams?: { readonly boot_report?: unknown };
  readonly addTags?: readonly string[];
}

/**
 * Refuses documents that no program in the guest would read. Vendor data becomes a part of one MIME
 * message. So does user data next to a part of ours, which `boot_report=user-data` or a tag adds.
 * Only cloud-init reads that message, and only the formats that it knows. Malformed agent tags are
 * refused too. Pure.
 * @param given the new values; stored values alone are never refused
 * @throws AppError VALIDATION with the option's name
 */
export function refuseLostDocuments(instance: Documents, given: Given): void {
  if (given.vendorData != null) {
    const why = whyLost(given.vendorData);
    if (why !== null) {
      throw new AppError('VALIDATION', `--vendor-data: ${why}; no other client reads it`, {
        hint: 'Give a #cloud-config, a script that begins with #!, or a MIME message in UTF-8.',
      });
    }
  }
  const wrong = isTagOfOursGiven(given) ? wrongAgentTag(instance.tags) : null;
  if (wrong !== null) {
    throw new AppError('VALIDATION', wrong, {
      hint: 'Remove the tag: gnt-instance remove-tags NAME TAG',
    });
  }
  const why = instance.userData === null ? null : whyLost(instance.userData);
  const joined = why === null ? null : whatJoins(instance, given);
  if (joined === null) return;
  throw new AppError('VALIDATION', `--user-data cannot be combined with ${joined.what}: ${why}`, {
    hint: `The added parts would make it a MIME message, which only cloud-init reads. To serve it unchanged, ${joined.otherwise}.`,
  });
}

/**
 * Returns the reason that makes user data a part of a message, if that reason or the data is new.
 */
function whatJoins(
  { dialects, hvparams, tags }: Documents,
  given: Given,
): { readonly what: string; readonly otherwise: string } | null {
  const isReported = hvparams.boot_report === 'user-data' && dialects.includes('ganeti');
  if (isReported && (given.userData != null || given.dialects || given.hvparams?.boot_report))
    return { what: 'boot_report=user-data', otherwise: 'give -H boot_report=no' };
  const isNew = given.userData != null || isTagOfOursGiven(given);
  if (isNew && parseAgentTags(tags) !== null)
    return { what: AGENT_TYPE_TAG, otherwise: 'remove the tag' };
  return null;
}

function isTagOfOursGiven({ tags, addTags }: Given): boolean {
  return [...(tags ?? []), ...(addTags ?? [])].some((tag) => tag.startsWith(AGENT_TAG_PREFIX));
}

/** Returns why cloud-init would run nothing of a document, in words; null if it would. */
function whyLost(base64: string): string | null {
  const found = classifyCloudDocument(Buffer.from(base64, 'base64'));
  return found.kind === 'foreign' ? found.why : null;
}
