import { execFileSync, spawnSync } from 'node:child_process';
import {
  copyFileSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { TAR_OPTIONS } from '../../../appliance/agent/overlay/run-tar.ts';
import { describeTree } from './tree.ts';

/** GNU tar's reading of an archive. */
export interface TarReading {
  /** A line for each entry, as by `ls -l`. */
  readonly entries: readonly string[];
  /** Its first message, or null. */
  readonly complaint: string | null;
  /** Describes the unpacked tree. */
  readonly tree: () => readonly string[];
}

/** Folder of tar and its libraries in each root. Archives do not contain the name. */
const TOOLS = '.gnt-tools';
const TIMEOUT_MS = 600_000;
const MAX_SAID_BYTES = 256 * 1024 * 1024;
/** A message, or a note about a created parent directory, whose line has no owner. */
const NO_ENTRY = /^(tar: |d\S+ +Creating directory: )/;
/** Unpacks each archive in its own root. A NUL ends its output, since tar never prints a NUL. */
const UNPACK_EACH = String.raw`ulimit -v 262144
cd "$1" || exit 1
shift
for root in */; do
  chroot "$root" "$@" <"${'${root%/}'}.tar" 2>&1
  printf '\0'
done`;

/**
 * Unpacks archives with GNU tar and the options for packages, each into a root with links of a
 * guest. It runs hundreds per second, with one process for each and without namespaces, so that
 * the confinement of tar is not covered.
 * @param folder holds the trees until this is disposed
 */
export class TarReadings implements Disposable {
  readonly #directory: string;
  readonly all: readonly TarReading[];

  constructor(archives: readonly Buffer[], folder: string) {
    this.#directory = mkdtempSync(join(folder, 'gnt-readings-'));
    try {
      this.all = this.#unpack(archives);
    } catch (error) {
      this[Symbol.dispose]();
      throw error;
    }
  }

  [Symbol.dispose](): void {
    rmSync(this.#directory, { recursive: true });
  }

  #unpack(archives: readonly Buffer[]): readonly TarReading[] {
    if (archives.length === 0) return [];
    const startedAtMs = Date.now();
    const loader = this.#copyTools();
    const roots = archives.map((archive, index) => this.#makeRoot(archive, index));
    const inside = (name: string): string => `/${TOOLS}/${name}`;
    const { stdout } = spawnSync(
      '/bin/sh',
      [
        ...['-c', UNPACK_EACH, 'sh', this.#roots],
        ...[inside(loader), '--argv0', 'tar', '--inhibit-cache', '--library-path', `/${TOOLS}`],
        ...[inside('tar'), ...TAR_OPTIONS, '--verbose', '--verbose'],
      ],
      {
        env: { PATH: '/usr/sbin:/usr/bin', LC_ALL: 'C', TZ: 'UTC0' },
        encoding: 'latin1',
        maxBuffer: MAX_SAID_BYTES,
        timeout: TIMEOUT_MS,
      },
    );
    const said = stdout.split('\0').slice(0, -1);
    if (said.length !== roots.length)
      throw new Error(`tar read ${said.length} of ${roots.length} archives`);
    return roots.map((root, index) => {
      const lines = (said[index] ?? '').split('\n').filter((line) => line !== '');
      return {
        entries: lines.filter((line) => !NO_ENTRY.test(line)),
        complaint: lines.find((line) => line.startsWith('tar: ')) ?? null,
        tree: () => {
          rmSync(join(root, TOOLS), { recursive: true, force: true });
          return describeTree(root, startedAtMs);
        },
      };
    });
  }

  get #roots(): string {
    return join(this.#directory, 'roots');
  }

  /** @returns the name of the dynamic loader among them */
  #copyTools(): string {
    mkdirSync(this.#roots);
    const tools = join(this.#directory, 'tools');
    mkdirSync(tools);
    const libraries = [
      ...execFileSync('ldd', ['/usr/bin/tar'], { encoding: 'utf8' }).matchAll(/\/\S+/g),
    ];
    for (const path of ['/usr/bin/tar', ...libraries.map(([found]) => found)])
      copyFileSync(path, join(tools, basename(path)));
    const loader = readdirSync(tools).find((name) => name.startsWith('ld-linux'));
    if (loader === undefined) throw new Error('tar has no dynamic loader');
    return loader;
  }

  #makeRoot(archive: Buffer, index: number): string {
    const root = join(this.#roots, String(index).padStart(6, '0'));
    mkdirSync(join(root, TOOLS), { recursive: true });
    mkdirSync(join(root, 'd'));
    symlinkSync('/d', join(root, 'way'));
    const tools = join(this.#directory, 'tools');
    for (const name of readdirSync(tools)) linkSync(join(tools, name), join(root, TOOLS, name));
    writeFileSync(`${root}.tar`, archive);
    return root;
  }
}
