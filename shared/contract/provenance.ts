import { z } from 'zod';

/**
 * Content of an installation, as the node verified it. Null: the installation had no such content,
 * or the node did not verify it.
 */
export const provenance = z.object({
  /** Checksum of the image file, `sha256:HEX` or `sha512:HEX`. */
  imageChecksum: z.string().nullable(),
  /** Key of the image's signature: `minisign:PUBLIC-KEY` or `openpgp:FINGERPRINT`. */
  imageKey: z.string().nullable(),
  /** Digest of the OS definition, as in `gnt-os info`. */
  osDigest: z.string().nullable(),
  /** `sha256:HEX` of the appliance's manifest. */
  applianceDigest: z.string().nullable(),
});
export type Provenance = z.infer<typeof provenance>;
