import { text } from 'node:stream/consumers';
import { type CatalogueVerdict, MAX_ENTRIES } from '#shared/contract/image-catalogue.ts';
import { ownValue } from '#shared/json/own-value.ts';
import { readYaml } from '#shared/yaml/read-yaml.ts';

/**
 * Reads a catalogue of images, as a sandboxed program (shared/sandbox/ask-sandboxed.ts), since
 * catalogues are untrusted. The argument is the host's architecture in Debian's spelling (amd64,
 * arm64). The standard input is the document. The standard output is a line with a
 * CatalogueVerdict, and a line for each entry. The daemon validates each entry.
 */
type Fields = Readonly<Record<string, unknown>>;

/** File types of whole disks in simplestreams, the preferred one first. */
const DISK_TYPES = ['disk1.img', 'disk-kvm.img', 'disk.img', 'disk.qcow2', 'qcow2'];
const MAX_PATHS = 64;

function read(document: string, machine: string): readonly [CatalogueVerdict, ...Fields[]] {
  const value = parse(document);
  if ('problem' in value) return refused(value.problem);
  const root = fieldsOf(value.parsed);
  switch (root['format']) {
    case 'index:1.0':
      return [{ verdict: 'index', paths: pathsOf(root).slice(0, MAX_PATHS) }];
    case 'products:1.0':
      return limited(productsOf(root, machine), true);
    default: {
      const { images } = root;
      if (Array.isArray(images))
        return limited(
          images.map((image: unknown) => entryOf(fieldsOf(image))),
          false,
        );
      const message =
        'it is neither simplestreams (index:1.0, products:1.0) nor a document with a list of images';
      return refused(message);
    }
  }
}

function limited(entries: readonly Fields[], isStream: boolean): ReturnType<typeof read> {
  return entries.length > MAX_ENTRIES
    ? refused(`it has more than ${MAX_ENTRIES} images`)
    : [{ verdict: 'entries', isStream }, ...entries];
}

function refused(message: string): ReturnType<typeof read> {
  return [{ verdict: 'refused', message }];
}

function parse(document: string): { parsed: unknown } | { problem: string } {
  // JSON is YAML, but the YAML reader is slow for documents as large as streams.
  if (/^\s*\{/.test(document)) {
    try {
      return { parsed: JSON.parse(document) };
    } catch {
      // A YAML document may begin with a brace as well.
    }
  }
  const yaml = readYaml(document);
  if ('problem' in yaml) return { problem: yaml.problem.reason };
  try {
    return { parsed: yaml.document.toJS({ maxAliasCount: 100 }) };
  } catch {
    return { problem: 'it has too many aliases' };
  }
}

/** Converts an operator's entry: names as the command's options, sizes with a unit. */
function entryOf(given: Fields): Fields {
  const { min_disk: minDisk, cloud_init: cloudInit, ...entry } = given;
  return {
    ...entry,
    ...(minDisk !== undefined && { minDiskBytes: sizeOf(minDisk) }),
    ...(cloudInit !== undefined && { cloudInit: wordOf(cloudInit) }),
  };
}

/** Returns the size in bytes. An invalid size stays as it is, and the daemon refuses it. */
function sizeOf(given: unknown): unknown {
  const match = /^(\d{1,7})\s*([MGT])i?B?$/i.exec(wordOf(given));
  if (match === null) return given;
  const power = { m: 2, g: 3, t: 4 }[(match[2] ?? '').toLowerCase()] ?? 0;
  return Number(match[1]) * 1024 ** power;
}

function pathsOf(root: Fields): string[] {
  return Object.values(fieldsOf(root['index']))
    .map(fieldsOf)
    .filter(({ datatype }) => datatype === 'image-downloads' || datatype === undefined)
    .flatMap(({ path }) => (typeof path === 'string' ? [path] : []));
}

function productsOf(root: Fields, machine: string): Fields[] {
  return Object.values(fieldsOf(root['products']))
    .map(fieldsOf)
    .filter((product) =>
      [machine, ownValue(OTHER_WORDS, machine)].includes(wordOf(product['arch'])),
    )
    .map(productOf)
    .filter((entry) => entry !== undefined);
}

const OTHER_WORDS: Readonly<Record<string, string>> = { amd64: 'x86_64', arm64: 'aarch64' };

function productOf(product: Fields): Fields | undefined {
  const [name, ...aliases] = namesOf(product);
  const versions = Object.entries(fieldsOf(product['versions'])).toSorted(([a], [b]) =>
    a < b ? 1 : -1,
  );
  for (const [, version] of versions) {
    const items = Object.values(fieldsOf(fieldsOf(version)['items'])).map(fieldsOf);
    const disk = DISK_TYPES.map((type) =>
      items.find(({ ftype, sha256 }) => ftype === type && sha256 !== undefined),
    ).find((item) => item !== undefined);
    if (disk === undefined) continue;
    const title = [product['os'], product['release_title'] ?? product['release']]
      .filter((word) => typeof word === 'string')
      .join(' ');
    return {
      name,
      aliases,
      title,
      url: disk['path'],
      checksum: `sha256:${wordOf(disk['sha256'])}`,
    };
  }
  return undefined;
}

/** Returns names such as `debian/12`. Ubuntu's aliases lack the distribution. */
function namesOf(product: Fields): string[] {
  const os = wordOf(product['os']).toLowerCase();
  const words = [...wordOf(product['aliases']).split(','), wordOf(product['version'])];
  const names = words
    .map((word) => word.trim().toLowerCase())
    .filter(Boolean)
    .map((word) => (word.includes('/') ? word : `${os}/${word}`));
  return [...new Set(names)].slice(0, 32);
}

function wordOf(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}

function fieldsOf(value: unknown): Fields {
  const isFields = typeof value === 'object' && value !== null && !Array.isArray(value);
  return isFields ? (value as Fields) : {};
}

const [machine = ''] = process.argv.slice(2);
const lines = read(await text(process.stdin), machine);
process.stdout.write(lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
