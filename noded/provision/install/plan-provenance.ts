import type { Provenance } from '#shared/contract/provenance.ts';
import type { BroughtImage } from './bring-content.ts';

/** The content of an installation. */
export interface InstalledContent {
  readonly isImport: boolean;
  readonly image: Pick<BroughtImage, 'checksum' | 'key'> | null;
  /** Digest of the OS definition before the first script and after the last. */
  readonly osDigests: readonly [before: string | null, after: string | null];
  /** Digests of the appliances that wrote to the disks. */
  readonly appliances: ReadonlySet<string>;
}

/**
 * Returns the provenance of an installation; undefined for an import, whose dumps may come from
 * another cluster. A definition that changed meanwhile has no single digest, nor have several
 * appliances. Pure.
 */
export function planProvenance({
  isImport,
  image,
  osDigests,
  appliances,
}: InstalledContent): Provenance | undefined {
  if (isImport) return undefined;
  const [before, after] = osDigests;
  const [appliance = null, ...others] = appliances;
  return {
    imageChecksum: image?.checksum ?? null,
    imageKey: image?.key ?? null,
    osDigest: before === after ? before : null,
    applianceDigest: others.length === 0 ? appliance : null,
  };
}
