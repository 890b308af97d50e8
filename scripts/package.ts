import {
  chmod,
  cp,
  glob,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { gzipSync } from 'node:zlib';
import { transform } from 'esbuild';
import { run } from '#shared/process/run.ts';
import { collectLicences } from './debian/licences.ts';
import { writeReleaseNotes, writeRepository } from './debian/repository.ts';
import { generateManPages } from './docs/generate.ts';

/**
 * Makes the Debian packages: `node scripts/package.ts [--arch amd64|arm64] [--key KEY] [FOLDER]`.
 * The default folder is dist/, the default architecture this machine's. The folder is an archive
 * for apt, signed with KEY or DEBSIGN_KEYID. Programs, npm packages and Node are under
 * /usr/lib/gnt; outside are only links, units, manual pages and completion.
 */
const top = join(import.meta.dirname, '..');
/** Names of architectures in Node, Debian and GNU. */
const ARCHITECTURES = [
  { arch: 'x64', debian: 'amd64', strip: 'x86_64-linux-gnu-strip' },
  { arch: 'arm64', debian: 'arm64', strip: 'aarch64-linux-gnu-strip' },
] as const;
type Architecture = (typeof ARCHITECTURES)[number];
const CLIENTS = [
  'gnt-instance',
  'gnt-backup',
  'gnt-image',
  'gnt-profile',
  'gnt-network',
  'gnt-bootenv',
  'gnt-os',
  'gnt-cluster',
  'gnt-node',
  'gnt-job',
  'gnt-group',
  'gnt-debug',
  'gnt-channel',
] as const;
/** Names in scripts/debian/control, with their programs. */
const PROGRAMS = {
  'gnt-common': [],
  'gnt-metad': ['gnt-metad'],
  gnt: [...CLIENTS, 'gnt-noded', 'gnt-appliance'],
} as const;
type PackageName = keyof typeof PROGRAMS;
// The keys of the object above.
const PACKAGES = Object.keys(PROGRAMS) as readonly PackageName[];
/** Used files of these packages; the rest are sources, tests and other architectures. */
const MODULE_FILES: Readonly<Record<string, readonly string[]>> = {
  koffi: [
    'package.json',
    'LICENSE.txt',
    'index.js',
    'src/koffi/index.js',
    'src/koffi/src/static.js',
  ],
  netlink: ['package.json', 'LICENSE', 'dist'],
  'node-gyp-build': ['package.json', 'LICENSE', 'index.js', 'node-gyp-build.js'],
};
/** The way from Ganeti's own daemon and back. */
const GANETI_PAGE = 'docs/howto/replace-ganeti-metad.md';
const BUILD_TIMEOUT_MS = 600_000;

const { values, positionals } = parseArgs({
  options: { arch: { type: 'string' }, key: { type: 'string' } },
  allowPositionals: true,
});
const outputDir = resolve(positionals[0] ?? join(top, 'dist'));
const tell = (text: string): void => void process.stdout.write(`${text}\n`);

interface PackageJson {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly license: string;
  readonly type: string;
}

const stage = await mkdtemp(join(tmpdir(), 'gnt-package-'));
// Folder of npm packages for another architecture, in locked versions.
const foreign = await mkdtemp(join(tmpdir(), 'gnt-package-'));
try {
  for (const file of await build(chooseArchitecture(values.arch))) tell(file);
} finally {
  for (const folder of [stage, foreign]) await rm(folder, { recursive: true, force: true });
}

function chooseArchitecture(name: string | undefined): Architecture {
  const chosen = ARCHITECTURES.find(({ arch, debian }) =>
    name === undefined ? arch === process.arch : debian === name,
  );
  if (chosen === undefined) throw new Error(`no package for ${name ?? process.arch}`);
  return chosen;
}

async function build(architecture: Architecture): Promise<readonly string[]> {
  // The project's own file.
  const project = JSON.parse(await readFile(join(top, 'package.json'), 'utf8')) as PackageJson;
  // The mode of each folder becomes that of / where the package is installed.
  for (const name of PACKAGES) await mkdir(join(stage, name), { mode: 0o755 });
  tell('package: programs and their npm packages');
  await copyPrograms(project);
  const modulesHome = await installModules(architecture);
  await copyModules(architecture, join(modulesHome, 'node_modules'));
  tell('package: units, manual pages, completion');
  await copyHostFiles();
  await writeDocuments();
  await writeCopyright(project, modulesHome);
  await mkdir(outputDir, { recursive: true });
  const files: string[] = [];
  for (const name of PACKAGES) {
    await writeControl(name, project, architecture);
    files.push(await pack(name, project, architecture));
  }
  tell('package: archive for apt, release notes');
  const key = values.key ?? process.env.DEBSIGN_KEYID;
  const signer = key ? { key, gnupgHome: process.env.GNUPGHOME } : null;
  await writeRepository(outputDir, signer);
  const changelog = await readFile(join(top, 'CHANGELOG.md'), 'utf8');
  await writeReleaseNotes(outputDir, changelog, project.version);
  return files;
}

async function pack(
  name: PackageName,
  { version }: PackageJson,
  { debian }: Architecture,
): Promise<string> {
  const file = join(outputDir, `${name}_${version}_${debian}.deb`);
  // Debian's own archive refuses zstd. Level 6 makes the package a sixth smaller and takes six
  // times as long.
  const options = ['--root-owner-group', '-Zxz', '-z1'];
  await run('dpkg-deb', [...options, '--build', join(stage, name), file], {
    timeoutMs: BUILD_TIMEOUT_MS,
  });
  return file;
}

async function copyPrograms(project: PackageJson): Promise<void> {
  const home = inStage('gnt', 'usr/lib/gnt');
  await run(process.execPath, [join(top, 'scripts/bundle.ts'), join(home, 'programs')], {
    timeoutMs: BUILD_TIMEOUT_MS,
  });
  const metad = inStage('gnt-metad', 'usr/lib/gnt/programs/metad');
  await mkdir(dirname(metad), { recursive: true });
  await rename(join(home, 'programs/metad'), metad);
  // Inputs of the key of a built appliance.
  await cp(join(top, 'appliance/image'), join(home, 'appliance/image'), { recursive: true });
  await copyFile('scripts/gnt', 'gnt-common', 'usr/lib/gnt/scripts/gnt', 0o755);
  const { name, version, description, license, type } = project;
  const kept = { name, version, private: true, description, license, type };
  const text = `${JSON.stringify(kept, null, 2)}\n`;
  await writeStaged('gnt-common', 'usr/lib/gnt/package.json', text);
  for (const owner of PACKAGES) {
    for (const program of PROGRAMS[owner]) {
      await mkdir(inStage(owner, 'usr/sbin'), { recursive: true });
      await symlink('../lib/gnt/scripts/gnt', inStage(owner, `usr/sbin/${program}`));
    }
  }
}

/** @returns the folder with the npm packages for that architecture */
async function installModules({ arch }: Architecture): Promise<string> {
  if (arch === process.arch) return top;
  tell(`package: npm packages for ${arch}`);
  for (const name of ['package.json', 'package-lock.json'])
    await cp(join(top, name), join(foreign, name));
  // Code for another architecture does not run here.
  const machine = ['--ignore-scripts', '--os=linux', `--cpu=${arch}`, '--libc=glibc'];
  const quiet = ['--no-audit', '--no-fund', '--loglevel=error'];
  await run('npm', ['ci', '--omit=dev', ...machine, ...quiet], {
    cwd: foreign,
    timeoutMs: BUILD_TIMEOUT_MS,
  });
  return foreign;
}

/**
 * Copies packages with native code, only the files for that architecture, and the program of Node.
 */
async function copyModules({ arch, strip }: Architecture, modules: string): Promise<void> {
  const koffi = `@koromix/koffi-linux-${arch}`;
  const files = [
    ...Object.entries(MODULE_FILES).flatMap(([name, own]) => own.map((file) => `${name}/${file}`)),
    ...['package.json', 'index.js', `linux_${arch}`].map((file) => `${koffi}/${file}`),
  ];
  for (const path of files) {
    await cp(join(modules, path), inStage('gnt-common', `usr/lib/gnt/node_modules/${path}`), {
      recursive: true,
      filter: (file) => !/\.(ts|map)$/.test(file),
    });
  }
  // Its spacing is as large as its code.
  const copied = inStage('gnt-common', 'usr/lib/gnt/node_modules');
  for await (const path of glob('netlink/dist/**/*.js', { cwd: copied })) {
    const source = await readFile(join(copied, path), 'utf8');
    const { code } = await transform(source, { minifyWhitespace: true, legalComments: 'inline' });
    await writeFile(join(copied, path), code);
  }
  const binding = `netlink/prebuilds/linux-${arch}/node.napi.node`;
  await copyFile(join(modules, binding), 'gnt-common', `usr/lib/gnt/node_modules/${binding}`);
  const node = `node-linux-${arch}/bin/node`;
  await copyFile(join(modules, node), 'gnt-common', `usr/lib/gnt/node_modules/${node}`, 0o755);
  for (const compiled of [node, binding]) {
    await run(strip, [
      '--strip-unneeded',
      inStage('gnt-common', `usr/lib/gnt/node_modules/${compiled}`),
    ]);
  }
  await mkdir(inStage('gnt-common', 'usr/lib/gnt/node_modules/.bin'), { recursive: true });
  await symlink(`../${node}`, inStage('gnt-common', 'usr/lib/gnt/node_modules/.bin/node'));
}

async function copyHostFiles(): Promise<void> {
  const from = 'noded/host/systemd';
  for (const [owner, file, to] of [
    ['gnt', 'gnt-noded.service', 'usr/lib/systemd/system/gnt-noded.service'],
    ['gnt', 'gnt.tmpfiles', 'usr/lib/tmpfiles.d/gnt.conf'],
    ['gnt', 'gnt.logrotate', 'etc/logrotate.d/gnt'],
    ['gnt', 'gnt-noded.default', 'etc/default/gnt-noded'],
    ['gnt', 'netrc.example', 'usr/share/doc/gnt/examples/netrc'],
    ['gnt-metad', 'gnt-metad.service', 'usr/lib/systemd/system/gnt-metad.service'],
    ['gnt-metad', 'gnt-metad.default', 'etc/default/gnt-metad'],
    ['gnt-metad', 'gnt.sysusers', 'usr/lib/sysusers.d/gnt-metad.conf'],
  ] as const)
    await copyFile(`${from}/${file}`, owner, to);
  const documents = ['README.md', 'ARCHITECTURE.md', 'SECURITY.md', 'docs/**/*.md'];
  for await (const document of glob(documents, { cwd: top })) {
    await copyFile(document, 'gnt', `usr/share/doc/gnt/${document}`);
  }
  await copyFile(GANETI_PAGE, 'gnt-metad', `usr/share/doc/gnt-metad/${basename(GANETI_PAGE)}`);
}

/** Writes the manual pages, and the completion that the commands print. */
async function writeDocuments(): Promise<void> {
  const ask = async (program: string, ...args: string[]): Promise<string> =>
    `${(await run(join(top, 'node_modules/.bin', program), args)).stdout}\n`;
  for (const [name, page] of await generateManPages(await readReleaseDate())) {
    const section = name.slice(name.lastIndexOf('.') + 1);
    const owner = name.startsWith('gnt-metad.') ? 'gnt-metad' : 'gnt';
    const file = `usr/share/man/man${section}/${name}.gz`;
    await writeStaged(owner, file, gzipSync(page, { level: 9 }));
  }
  for (const program of CLIENTS) {
    for (const [shell, path] of [
      ['bash', `bash-completion/completions/${program}`],
      ['zsh', `zsh/vendor-completions/_${program}`],
      ['fish', `fish/vendor_completions.d/${program}.fish`],
    ] as const) {
      await writeStaged('gnt', `usr/share/${path}`, await ask(program, 'completion', shell));
    }
  }
}

/** Returns the day of the newest changelog entry, so that equal sources make equal pages. */
async function readReleaseDate(): Promise<string> {
  const changelog = await readFile(join(top, 'scripts/debian/changelog'), 'utf8');
  const date = /^ -- .+> {2}(.+)$/m.exec(changelog)?.[1] ?? '';
  return new Date(date).toISOString().slice(0, 10);
}

/**
 * Writes the control files of a package: fields from scripts/debian/control, and the files there
 * that begin with its name.
 */
async function writeControl(
  name: PackageName,
  { version }: PackageJson,
  { debian }: Architecture,
): Promise<void> {
  const from = join(top, 'scripts/debian');
  const changelog = await readFile(join(from, 'changelog'), 'utf8');
  if (!changelog.startsWith(`gnt (${version}) `))
    throw new Error(`scripts/debian/changelog does not begin with ${version}`);
  const compressed = gzipSync(changelog, { level: 9 });
  await writeStaged(name, `usr/share/doc/${name}/changelog.gz`, compressed);
  for (const file of await readdir(from)) {
    const kind = file.slice(name.length + 1);
    if (file !== `${name}.${kind}`) continue;
    if (kind === 'lintian-overrides')
      await copyFile(join(from, file), name, `usr/share/lintian/overrides/${name}`);
    else await copyFile(join(from, file), name, `DEBIAN/${kind}`, 0o755);
  }
  const settings = glob('etc/**', { cwd: inStage(name, ''), withFileTypes: true });
  const conffiles: string[] = [];
  for await (const entry of settings) {
    if (entry.isFile())
      conffiles.push(join('/', relative(join(stage, name), entry.parentPath), entry.name));
  }
  if (conffiles.length > 0)
    await writeStaged(name, 'DEBIAN/conffiles', `${conffiles.sort().join('\n')}\n`);
  await mkdir(inStage(name, 'DEBIAN'), { recursive: true });
  const { DEBFULLNAME: fullName, DEBEMAIL: email } = process.env;
  await run(
    'dpkg-gencontrol',
    [
      ...[`-p${name}`, `-c${join(from, 'control')}`, `-l${join(from, 'changelog')}`],
      ...[`-P${inStage(name, '')}`, `-O${inStage(name, 'DEBIAN/control')}`],
      ...[`-f${join(stage, 'files')}`, '-T/dev/null'],
      `-Vgnt:Host=${(await readHostPackages('product')).join(', ')}`,
      `-Vgnt:Networks=${(await readHostPackages('networks')).join(', ')}`,
      // Debian's tools name the builder by these variables; users write to this address.
      ...(fullName && email ? [`-DMaintainer=${fullName} <${email}>`] : []),
    ],
    { env: { PATH: process.env.PATH ?? '', DEB_HOST_ARCH: debian } },
  );
}

/** The exact version of gnt-common, which the others depend on, has the licences of all. */
async function writeCopyright(project: PackageJson, modulesHome: string): Promise<void> {
  const own = `gnt ${project.version}: ${project.license}\n\n${await readFile(join(top, 'LICENSE'), 'utf8')}`;
  const others =
    '\nLicences of the npm packages in the programs: /usr/share/doc/gnt-common/copyright\n';
  for (const name of PACKAGES) {
    const text = name === 'gnt-common' ? await collectLicences(project, modulesHome) : own + others;
    await writeStaged(name, `usr/share/doc/${name}/copyright`, text);
  }
}

/**
 * Reads the list that a checkout installs too.
 * @param kind packages of the product, or packages for networks of the node's own
 */
async function readHostPackages(kind: 'product' | 'networks'): Promise<readonly string[]> {
  const script = await readFile(join(top, 'scripts/host-packages.sh'), 'utf8');
  const list = new RegExp(`^${kind}='([^']+)'$`, 'm').exec(script)?.[1];
  if (list === undefined) throw new Error('scripts/host-packages.sh names no packages');
  return list.split(' ');
}

function inStage(owner: PackageName, path: string): string {
  return join(stage, owner, path);
}

async function copyFile(from: string, owner: PackageName, to: string, mode = 0o644): Promise<void> {
  await writeStaged(owner, to, await readFile(resolve(top, from)));
  await chmod(inStage(owner, to), mode);
}

async function writeStaged(
  owner: PackageName,
  path: string,
  content: string | Buffer,
): Promise<void> {
  await mkdir(dirname(inStage(owner, path)), { recursive: true });
  await writeFile(inStage(owner, path), content);
}
