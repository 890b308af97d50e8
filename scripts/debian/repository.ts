import { readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { run } from '#shared/process/run.ts';

/** Hashing takes about a second; a longer run is a hang. */
const TIMEOUT_MS = 120_000;

export interface Signer {
  /** A key for `gpg --local-user`. */
  readonly key: string;
  /** Default: gpg's own. */
  readonly gnupgHome?: string | undefined;
}

/**
 * Writes the index of a flat apt repository (sources.list(5)) into a folder with packages.
 * @param signer null: unsigned, so apt needs `trusted=yes`
 */
export async function writeRepository(folder: string, signer: Signer | null): Promise<void> {
  for (const name of ['Packages', 'Packages.gz', 'Release', ...SIGNED])
    await rm(join(folder, name), { force: true });
  const ask = async (...words: string[]): Promise<string> => {
    const { stdout } = await run('apt-ftparchive', words, { cwd: folder, timeoutMs: TIMEOUT_MS });
    return `${stdout}\n`;
  };
  const packages = await ask('packages', '.');
  await writeFile(join(folder, 'Packages'), packages);
  await writeFile(join(folder, 'Packages.gz'), gzipSync(packages, { level: 9 }));
  const architectures = new Set(
    (await readdir(folder)).flatMap((name) => /_(amd64|arm64)\.deb$/.exec(name)?.[1] ?? []),
  );
  const fields = { Origin: 'gnt', Label: 'gnt', Architectures: [...architectures].join(' ') };
  const release = await ask(
    ...Object.entries(fields).flatMap(([name, value]) => [
      '-o',
      `APT::FTPArchive::Release::${name}=${value}`,
    ]),
    ...['release', '.'],
  );
  await writeFile(join(folder, 'Release.new'), release);
  await rename(join(folder, 'Release.new'), join(folder, 'Release'));
  if (signer !== null) await sign(folder, signer);
}

const SIGNED = ['InRelease', 'Release.gpg', 'gnt-archive-keyring.asc'] as const;

async function sign(folder: string, { key, gnupgHome }: Signer): Promise<void> {
  const gpg = (...words: string[]): Promise<unknown> =>
    run('gpg', ['--batch', '--yes', '--local-user', key, '--armor', ...words], {
      cwd: folder,
      timeoutMs: TIMEOUT_MS,
      ...(gnupgHome !== undefined && { env: { GNUPGHOME: gnupgHome } }),
    });
  const [inline, detached, publicKey] = SIGNED;
  await gpg('--output', inline, '--clearsign', 'Release');
  await gpg('--output', detached, '--detach-sign', 'Release');
  await gpg('--output', publicKey, '--export', key);
}

/** Writes the part of the changelog about this version, or about the unreleased one. */
export async function writeReleaseNotes(
  folder: string,
  changelog: string,
  version: string,
): Promise<void> {
  const parts = changelog.split(/^(?=## )/m);
  const part =
    parts.find((text) => text.startsWith(`## ${version}`) || text.startsWith(`## [${version}]`)) ??
    parts.find((text) => text.startsWith('## Unreleased'));
  if (part === undefined) throw new Error(`CHANGELOG.md has no part about ${version}`);
  const notes = part.replace(/^## .*/, `# gnt ${version}`);
  await writeFile(join(folder, 'RELEASE-NOTES.md'), notes);
}
