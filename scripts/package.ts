import {
  chmod,
  cp,
  glob,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { gzipSync } from 'node:zlib';
import { run } from '#shared/process/run.ts';
import { generateManPages } from './docs/generate.ts';

/**
 * Makes a Debian package: `node scripts/package.ts [--arch amd64|arm64] [FOLDER]`. The default
 * folder is dist/, the default architecture this machine's. Programs, npm packages and Node are
 * under /usr/lib/gnt; outside are only links, units, manual pages and completion.
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
const DAEMONS = ['gnt-noded', 'gnt-metad', 'gnt-appliance'] as const;
const PROGRAMS = [...CLIENTS, ...DAEMONS] as const;
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
const BUILD_TIMEOUT_MS = 600_000;

const { values, positionals } = parseArgs({
  options: { arch: { type: 'string' } },
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
// Its mode becomes that of / where the package is installed.
await chmod(stage, 0o755);
// Folder of npm packages for another architecture, in locked versions.
const foreign = await mkdtemp(join(tmpdir(), 'gnt-package-'));
try {
  tell(await build(chooseArchitecture(values.arch)));
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

async function build(architecture: Architecture): Promise<string> {
  // The project's own file.
  const project = JSON.parse(await readFile(join(top, 'package.json'), 'utf8')) as PackageJson;
  tell('package: programs and their npm packages');
  await copyPrograms(project);
  const modulesHome = await installModules(architecture);
  await copyModules(architecture, join(modulesHome, 'node_modules'));
  tell('package: units, manual pages, completion');
  await copyHostFiles();
  await writeDocuments();
  await writeControl(project, architecture, modulesHome);
  const file = join(outputDir, `gnt_${project.version}_${architecture.debian}.deb`);
  tell(`package: ${basename(file)}`);
  await mkdir(outputDir, { recursive: true });
  // Debian's own archive refuses zstd. Level 6 makes the package a sixth smaller and takes six
  // times as long.
  await run('dpkg-deb', ['--root-owner-group', '-Zxz', '-z1', '--build', stage, file], {
    timeoutMs: BUILD_TIMEOUT_MS,
  });
  return file;
}

async function copyPrograms(project: PackageJson): Promise<void> {
  const home = inStage('usr/lib/gnt');
  await run(process.execPath, [join(top, 'scripts/bundle.ts'), join(home, 'programs')], {
    timeoutMs: BUILD_TIMEOUT_MS,
  });
  // Inputs of the key of a built appliance.
  await cp(join(top, 'appliance/image'), join(home, 'appliance/image'), { recursive: true });
  await copyFile('scripts/gnt', 'usr/lib/gnt/scripts/gnt', 0o755);
  const { name, version, description, license, type } = project;
  const kept = { name, version, private: true, description, license, type };
  await writeFile(join(home, 'package.json'), `${JSON.stringify(kept, null, 2)}\n`);
  await mkdir(inStage('usr/sbin'), { recursive: true });
  for (const program of PROGRAMS) {
    await symlink('../lib/gnt/scripts/gnt', inStage(`usr/sbin/${program}`));
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
    await cp(join(modules, path), inStage(`usr/lib/gnt/node_modules/${path}`), {
      recursive: true,
      filter: (file) => !/\.(ts|map)$/.test(file),
    });
  }
  const binding = `netlink/prebuilds/linux-${arch}/node.napi.node`;
  await copyFile(join(modules, binding), `usr/lib/gnt/node_modules/${binding}`);
  const node = `node-linux-${arch}/bin/node`;
  await copyFile(join(modules, node), `usr/lib/gnt/node_modules/${node}`, 0o755);
  for (const compiled of [node, binding]) {
    await run(strip, ['--strip-unneeded', inStage(`usr/lib/gnt/node_modules/${compiled}`)]);
  }
  await mkdir(inStage('usr/lib/gnt/node_modules/.bin'), { recursive: true });
  await symlink(`../${node}`, inStage('usr/lib/gnt/node_modules/.bin/node'));
}

async function copyHostFiles(): Promise<void> {
  const from = 'noded/host/systemd';
  await copyFile(`${from}/gnt-noded.service`, 'usr/lib/systemd/system/gnt-noded.service');
  await copyFile(`${from}/gnt.sysusers`, 'usr/lib/sysusers.d/gnt.conf');
  await copyFile(`${from}/gnt.tmpfiles`, 'usr/lib/tmpfiles.d/gnt.conf');
  await copyFile(`${from}/gnt.logrotate`, 'etc/logrotate.d/gnt');
  await copyFile(`${from}/gnt-noded.default`, 'etc/default/gnt-noded');
  await copyFile(`${from}/netrc.example`, 'usr/share/doc/gnt/examples/netrc');
  const documents = ['README.md', 'ARCHITECTURE.md', 'SECURITY.md', 'docs/**/*.md'];
  for await (const document of glob(documents, { cwd: top })) {
    await copyFile(document, `usr/share/doc/gnt/${document}`);
  }
}

/** Writes the manual pages, and the completion that the commands print. */
async function writeDocuments(): Promise<void> {
  const ask = async (program: string, ...args: string[]): Promise<string> =>
    `${(await run(join(top, 'node_modules/.bin', program), args)).stdout}\n`;
  for (const [name, page] of await generateManPages(await readReleaseDate())) {
    const section = name.slice(name.lastIndexOf('.') + 1);
    await writeStaged(`usr/share/man/man${section}/${name}.gz`, gzipSync(page, { level: 9 }));
  }
  for (const program of CLIENTS) {
    for (const [shell, path] of [
      ['bash', `bash-completion/completions/${program}`],
      ['zsh', `zsh/vendor-completions/_${program}`],
      ['fish', `fish/vendor_completions.d/${program}.fish`],
    ] as const) {
      await writeStaged(`usr/share/${path}`, await ask(program, 'completion', shell));
    }
  }
}

/** Returns the day of the newest changelog entry, so that equal sources make equal pages. */
async function readReleaseDate(): Promise<string> {
  const changelog = await readFile(join(top, 'scripts/debian/changelog'), 'utf8');
  const date = /^ -- .+> {2}(.+)$/m.exec(changelog)?.[1] ?? '';
  return new Date(date).toISOString().slice(0, 10);
}

async function writeControl(
  project: PackageJson,
  architecture: Architecture,
  modulesHome: string,
): Promise<void> {
  const changelog = await readFile(join(top, 'scripts/debian/changelog'), 'utf8');
  const [, version, maintainer] = /^gnt \((.+)\)[^]*?^ -- (.+ <.+>) {2}/m.exec(changelog) ?? [];
  if (version !== project.version || maintainer === undefined) {
    throw new Error(`scripts/debian/changelog does not begin with ${project.version}`);
  }
  await writeStaged('usr/share/doc/gnt/changelog.gz', gzipSync(changelog, { level: 9 }));
  await copyFile('scripts/debian/lintian-overrides', 'usr/share/lintian/overrides/gnt');
  const { DEBFULLNAME: name, DEBEMAIL: email } = process.env;
  const control = [
    'Package: gnt',
    `Version: ${project.version}`,
    `Architecture: ${architecture.debian}`,
    'Section: admin',
    'Priority: optional',
    // Debian's tools name the builder by these variables; users write to this address.
    `Maintainer: ${name && email ? `${name} <${email}>` : maintainer}`,
    `Depends: ${['libc6', 'libstdc++6', 'passwd', ...(await readHostPackages('product'))].join(', ')}`,
    `Recommends: ${(await readHostPackages('networks')).join(', ')}`,
    'Description: cloud-like installation of KVM/QEMU virtual machines',
    ' A node daemon, a metadata daemon and commands that install and run KVM/QEMU',
    ' instances: each has a private link-local channel to its host, reads its own',
    ' metadata over it, and is installed in a read-only appliance VM.',
    '',
  ];
  await writeStaged('DEBIAN/control', control.join('\n'));
  await writeStaged('DEBIAN/conffiles', '/etc/logrotate.d/gnt\n/etc/default/gnt-noded\n');
  await writeStaged('usr/share/doc/gnt/copyright', await collectLicences(project, modulesHome));
  for (const script of ['postinst', 'prerm', 'postrm']) {
    await copyFile(`scripts/debian/${script}`, `DEBIAN/${script}`, 0o755);
  }
}

/** Collects the licences of gnt, Node, and the npm packages in the bundles, each text once. */
async function collectLicences(project: PackageJson, home: string): Promise<string> {
  const { stdout } = await run('npm', ['ls', '--omit=dev', '--all', '--parseable'], { cwd: home });
  const packagesByText = new Map([['', [`gnt ${project.version}: ${project.license}`]]]);
  for (const folder of [...new Set(stdout.split('\n'))].filter((path) => path !== home).sort()) {
    const [file] = (await readdir(folder)).filter((name) => /^licen[cs]e/i.test(name));
    // A package's own file, which names its licence.
    const { name, version, license } = JSON.parse(
      await readFile(join(folder, 'package.json'), 'utf8'),
    ) as PackageJson;
    const text = file === undefined ? '' : await readFile(join(folder, file), 'utf8');
    packagesByText.getOrInsert(text.trim(), []).push(`${name} ${version}: ${license}`);
  }
  const texts = [...packagesByText].map(([text, packages]) =>
    [...packages, '', text].join('\n').trim(),
  );
  return `${texts.join(`\n\n${'-'.repeat(78)}\n`)}\n`;
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

function inStage(path: string): string {
  return join(stage, path);
}

async function copyFile(from: string, to: string, mode = 0o644): Promise<void> {
  await writeStaged(to, await readFile(resolve(top, from)));
  await chmod(inStage(to), mode);
}

async function writeStaged(path: string, content: string | Buffer): Promise<void> {
  await mkdir(dirname(inStage(path)), { recursive: true });
  await writeFile(inStage(path), content);
}
