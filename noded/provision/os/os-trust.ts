import type { OsSettings, OsTrust } from '#shared/contract/api.ts';
import { AppError } from '#shared/errors/app-error.ts';

/**
 * Judges whether a definition is trusted. Trust refers to the content that an administrator
 * reviewed, not to the name. Trust in the OS holds for all its variants, trust in a variant for
 * that variant. Pure.
 * @param layers settings of the OS, and of the requested variant
 * @param digest of the present content; null for a broken definition
 */
export function judgeTrust(layers: readonly OsSettings[], digest: string | null): OsTrust {
  const trusted = layers.filter((settings) => settings.trusted);
  const given = trusted.flatMap(({ trust }) => trust ?? []).sort((a, b) => b.atMs - a.atMs);
  const [latest] = given;
  const holding = given.find((trust) => trust.digest === digest);
  if (holding !== undefined) return { state: 'trusted', digest, trustedAtMs: holding.atMs };
  if (latest !== undefined) return { state: 'changed', digest, trustedAtMs: latest.atMs };
  return { state: trusted.length > 0 ? 'by-name' : 'untrusted', digest, trustedAtMs: null };
}

/**
 * Explains why the scripts of a definition may not run on the host, as a clause: `but the OS is not
 * trusted`.
 */
export function explainMistrust({ state, trustedAtMs }: OsTrust): string {
  switch (state) {
    case 'changed':
      return `but the definition changed after it was trusted on ${formatDate(trustedAtMs ?? 0)}`;
    case 'by-name':
      return 'but only its name was trusted, before it existed or by an earlier release, and not its content';
    case 'untrusted':
    case 'trusted':
      return 'but the OS is not trusted';
  }
}

/**
 * @param way alternative to trusting the OS, as an imperative clause
 * @throws AppError OS_NOT_TRUSTED
 */
export function refuseMistrusted(name: string, what: string, trust: OsTrust, way: string): never {
  const first =
    trust.state === 'untrusted'
      ? `Read the scripts, then run gnt-os modify --trusted yes ${name}`
      : `Read its present content, then run gnt-os trust ${name}`;
  throw new AppError('OS_NOT_TRUSTED', `${what} would run on the host, ${explainMistrust(trust)}`, {
    details: { os: name, ...trust },
    hint: `${first}. Or ${way}`,
  });
}

/** `2026-12-01 14:05:09 UTC` */
function formatDate(atMs: number): string {
  return `${new Date(atMs).toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}
