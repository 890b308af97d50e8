import { chmod, cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { gzipSync } from 'node:zlib';
import { run } from '#shared/process/run.ts';

/**
 * Makes a Debian package: `node scripts/package.ts [FOLDER]`, into dist/ without one. The programs,
 * their npm packages and their own Node are under /usr/lib/gnt; nothing outside of it but links,
 * units, manual pages and completion.
 */
const top = join(import.meta.dirname, '..');
const DEBIAN_ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' };
const CLIENTS = [
  'gnt-instance',
  'gnt-backup',
  'gnt-os',
  'gnt-cluster',
  'gnt-node',
  'gnt-job',
] as const;
const PROGRAMS = [...CLIENTS, 'gnt-noded', 'gnt-metad', 'gnt-appliance', 'gnt-channel'] as const;
const BUILD_TIMEOUT_MS = 600_000;

const outputDir = resolve(process.argv[2] ?? join(top, 'dist'));
const tell = (text: string): void => void process.stdout.write(`${text}\n`);

interface PackageJson {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly license: string;
  readonly type: string;
  readonly imports: object;
}

const stage = await mkdtemp(join(tmpdir(), 'gnt-package-'));
// Its mode becomes that of / on the machine where the package is installed.
await chmod(stage, 0o755);
try {
  tell(await build());
} finally {
  await rm(stage, { recursive: true, force: true });
}

async function build(): Promise<string> {
  const architecture = DEBIAN_ARCHITECTURES[process.arch];
  if (architecture === undefined) throw new Error(`no Debian name for ${process.arch}`);
  // Our own file.
  const project = JSON.parse(await readFile(join(top, 'package.json'), 'utf8')) as PackageJson;
  tell('package: programs and their npm packages');
  await copyPrograms(project);
  await copyModules();
  tell('package: units, manual pages, completion');
  await copyHostFiles();
  await writeDocuments();
  await writeControl(project, architecture);
  const file = join(outputDir, `gnt_${project.version}_${architecture}.deb`);
  tell(`package: ${basename(file)}`);
  await mkdir(outputDir, { recursive: true });
  await run('dpkg-deb', ['--root-owner-group', '-Zzstd', '-z3', '--build', stage, file], {
    timeoutMs: BUILD_TIMEOUT_MS,
  });
  return file;
}

async function copyPrograms(project: PackageJson): Promise<void> {
  const home = inStage('usr/lib/gnt');
  for (const folder of ['noded', 'metad', 'appliance', 'cluster-cli', 'shared']) {
    await cp(join(top, folder), join(home, folder), { recursive: true });
  }
  await copyFile('scripts/gnt', 'usr/lib/gnt/scripts/gnt', 0o755);
  const { name, version, description, license, type, imports } = project;
  const kept = { name, version, private: true, description, license, type, imports };
  await writeFile(join(home, 'package.json'), `${JSON.stringify(kept, null, 2)}\n`);
  await mkdir(inStage('usr/sbin'), { recursive: true });
  for (const program of PROGRAMS) {
    await symlink('../lib/gnt/scripts/gnt', inStage(`usr/sbin/${program}`));
  }
}

/** Packages that run, and of Node the one program. */
async function copyModules(): Promise<void> {
  const { stdout } = await run('npm', ['ls', '--omit=dev', '--all', '--parseable'], { cwd: top });
  const node = `node-linux-${process.arch}`;
  for (const path of stdout.split('\n')) {
    const name = relative(join(top, 'node_modules'), path);
    // Nested packages come with those that hold them.
    if (name.startsWith('..') || name === '' || name.includes('node_modules')) continue;
    if (name.startsWith('node-linux-')) continue;
    await cp(path, inStage(`usr/lib/gnt/node_modules/${name}`), { recursive: true });
  }
  await copyFile(
    `node_modules/${node}/bin/node`,
    `usr/lib/gnt/node_modules/${node}/bin/node`,
    0o755,
  );
  await mkdir(inStage('usr/lib/gnt/node_modules/.bin'), { recursive: true });
  await symlink(`../${node}/bin/node`, inStage('usr/lib/gnt/node_modules/.bin/node'));
}

async function copyHostFiles(): Promise<void> {
  const from = 'noded/systemd';
  await copyFile(`${from}/gnt-noded.service`, 'usr/lib/systemd/system/gnt-noded.service');
  await copyFile(`${from}/gnt.sysusers`, 'usr/lib/sysusers.d/gnt.conf');
  await copyFile(`${from}/gnt.tmpfiles`, 'usr/lib/tmpfiles.d/gnt.conf');
  await copyFile(`${from}/gnt.logrotate`, 'etc/logrotate.d/gnt');
  await copyFile(`${from}/gnt-noded.default`, 'etc/default/gnt-noded');
  await copyFile(`${from}/netrc.example`, 'usr/share/doc/gnt/examples/netrc');
  for (const document of ['README.md', 'ARCHITECTURE.md']) {
    await copyFile(document, `usr/share/doc/gnt/${document}`);
  }
}

/** Made by the commands themselves. */
async function writeDocuments(): Promise<void> {
  const ask = async (program: string, ...args: string[]): Promise<string> =>
    `${(await run(join(top, 'node_modules/.bin', program), args)).stdout}\n`;
  for (const program of CLIENTS) {
    await writeStaged(
      `usr/share/man/man8/${program}.8.gz`,
      gzipSync(await ask(program, 'man'), { level: 9 }),
    );
    for (const [shell, path] of [
      ['bash', `bash-completion/completions/${program}`],
      ['zsh', `zsh/vendor-completions/_${program}`],
      ['fish', `fish/vendor_completions.d/${program}.fish`],
    ] as const) {
      await writeStaged(`usr/share/${path}`, await ask(program, 'completion', shell));
    }
  }
}

async function writeControl(project: PackageJson, architecture: string): Promise<void> {
  const control = [
    'Package: gnt',
    `Version: ${project.version}`,
    `Architecture: ${architecture}`,
    'Section: admin',
    'Priority: optional',
    'Maintainer: gnt developers <root@localhost>',
    `Depends: ${['libc6', 'libstdc++6', 'passwd', ...(await readHostPackages())].join(', ')}`,
    `Description: ${project.description}`,
    ' A node daemon, a metadata daemon and commands that install and run KVM/QEMU machines.',
    '',
  ];
  await writeStaged('DEBIAN/control', control.join('\n'));
  await writeStaged('DEBIAN/conffiles', '/etc/logrotate.d/gnt\n/etc/default/gnt-noded\n');
  await writeStaged(
    'usr/share/doc/gnt/copyright',
    `License: ${project.license}\nnpm packages below /usr/lib/gnt/node_modules have their own licences beside them.\n`,
  );
  for (const script of ['postinst', 'prerm', 'postrm']) {
    await copyFile(`scripts/debian/${script}`, `DEBIAN/${script}`, 0o755);
  }
}

/** The list that a checkout installs too. */
async function readHostPackages(): Promise<readonly string[]> {
  const script = await readFile(join(top, 'scripts/host-packages.sh'), 'utf8');
  const list = /^product='([^']+)'$/m.exec(script)?.[1];
  if (list === undefined) throw new Error('scripts/host-packages.sh names no packages');
  return list.split(' ');
}

function inStage(path: string): string {
  return join(stage, path);
}

async function copyFile(from: string, to: string, mode = 0o644): Promise<void> {
  await writeStaged(to, await readFile(join(top, from)));
  await chmod(inStage(to), mode);
}

async function writeStaged(path: string, content: string | Buffer): Promise<void> {
  await mkdir(dirname(inStage(path)), { recursive: true });
  await writeFile(inStage(path), content);
}
