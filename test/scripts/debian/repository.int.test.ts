import assert from 'node:assert/strict';
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { CommandFailed, run } from '#shared/process/run.ts';
import { writeReleaseNotes, writeRepository } from '../../../scripts/debian/repository.ts';

let work = '';
let folder = '';
let gnupgHome = '';

before(async () => {
  work = await mkdtemp(join(tmpdir(), 'gnt-repository-'));
  // apt reads archives as a user of its own.
  await chmod(work, 0o755);
  folder = join(work, 'dist');
  gnupgHome = join(work, 'gnupg');
  await mkdir(folder);
  await mkdir(gnupgHome, { mode: 0o700 });
  await makePackage('gnt-metad', '0.2.0');
  await makePackage('gnt-metad', '0.10.0');
  const quick = ['--batch', '--passphrase', '', '--quick-generate-key', 'builder@gnt.example'];
  await run('gpg', quick, { env: { GNUPGHOME: gnupgHome } });
});
after(async () => {
  await run('gpgconf', ['--kill', 'all'], { env: { GNUPGHOME: gnupgHome } });
  await rm(work, { recursive: true });
});

async function makePackage(name: string, version: string): Promise<void> {
  const tree = join(work, `${name}-${version}`);
  await mkdir(join(tree, 'DEBIAN'), { recursive: true });
  const maintainer = 'Maintainer: builder <builder@gnt.example>';
  await writeFile(
    join(tree, 'DEBIAN/control'),
    `Package: ${name}\nVersion: ${version}\nArchitecture: amd64\n${maintainer}\nDescription: test\n`,
  );
  await run('dpkg-deb', ['--build', tree, join(folder, `${name}_${version}_amd64.deb`)]);
}

/** Runs apt with this archive alone, below its own folder. Returns what it prints. */
async function askApt(options: string, ...words: readonly string[]): Promise<string> {
  const state = await mkdtemp(join(work, 'apt-'));
  await chmod(state, 0o755);
  await writeFile(join(state, 'sources.list'), `deb [${options}] file:${folder} ./\n`);
  for (const name of ['lists/partial', 'cache/archives/partial'])
    await mkdir(join(state, name), { recursive: true });
  const settings = [
    ...[`Dir::Etc::sourcelist=${state}/sources.list`, 'Dir::Etc::sourceparts=/dev/null'],
    ...[`Dir::State::lists=${state}/lists`, `Dir::Cache=${state}/cache`],
    ...['APT::Architecture=amd64', 'APT::Architectures=amd64', 'APT::Update::Error-Mode=any'],
  ].flatMap((setting) => ['-o', setting]);
  await run('apt-get', [...settings, 'update']);
  return (await run('apt-cache', [...settings, ...words])).stdout;
}

function refusal(text: RegExp): (error: unknown) => boolean {
  return (error) => {
    assert.ok(error instanceof CommandFailed);
    assert.match(error.stderr, text);
    return true;
  };
}

test('apt finds the newest package of a folder that it trusts, and no signature', async () => {
  await writeRepository(folder, null);
  const found = await askApt('trusted=yes', 'policy', 'gnt-metad');
  assert.match(found, /Candidate: 0\.10\.0/);
  await assert.rejects(askApt('signed-by=/dev/null', 'policy'), refusal(/is not signed/));
});

test('apt accepts a signed folder by its key, and no package list of another day', async () => {
  await writeRepository(folder, { key: 'builder@gnt.example', gnupgHome });
  const options = `signed-by=${folder}/gnt-archive-keyring.asc`;
  assert.match(await askApt(options, 'policy', 'gnt-metad'), /Candidate: 0\.10\.0/);
  const { stdout } = await run('gpg', ['--verify', 'Release.gpg', 'Release'], {
    cwd: folder,
    env: { GNUPGHOME: gnupgHome },
  });
  assert.equal(stdout, '');
  await rm(join(folder, 'Packages.gz'));
  const packages = await readFile(join(folder, 'Packages'), 'utf8');
  await writeFile(join(folder, 'Packages'), packages.replace('0.10.0', '0.11.0'));
  await assert.rejects(askApt(options, 'policy'), refusal(/Hash Sum mismatch/));
});

test('a build without a key removes the signatures of an earlier one', async () => {
  await writeRepository(folder, { key: 'builder@gnt.example', gnupgHome });
  await writeRepository(folder, null);
  await assert.rejects(readFile(join(folder, 'InRelease')), { code: 'ENOENT' });
  await assert.rejects(readFile(join(folder, 'Release.gpg')), { code: 'ENOENT' });
});

test('release notes are the part of the changelog about the version, or the unreleased part', async () => {
  const changelog = '# Changelog\n\n## Unreleased\n\n- new\n\n## 0.2.0 - 2026-12-01\n\n- old\n';
  const notesOf = async (version: string): Promise<string> => {
    await writeReleaseNotes(folder, changelog, version);
    return await readFile(join(folder, 'RELEASE-NOTES.md'), 'utf8');
  };
  assert.equal(await notesOf('0.2.0'), '# gnt 0.2.0\n\n- old\n');
  assert.equal(await notesOf('0.3.0'), '# gnt 0.3.0\n\n- new\n\n');
  await assert.rejects(
    writeReleaseNotes(folder, '# Changelog\n', '0.3.0'),
    /no part about 0\.3\.0/,
  );
});
