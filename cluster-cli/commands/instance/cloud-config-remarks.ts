import { isDeepStrictEqual } from 'node:util';
import { type Document, isMap, isScalar, isSeq, type Scalar, visit } from 'yaml';
import {
  type CloudPart,
  parseCloudYaml,
  readCloudYaml,
  toFields,
} from '../../values/cloud-parts.ts';

/** A likely mistake in user or vendor data. The guest still gets the document. */
export interface Remark {
  /** The document or part. */
  readonly name: string;
  readonly text: string;
}

/** Keys that select how cloud-init merges a cloud-config with earlier ones. */
const MERGE_KEYS = ['merge_how', 'merge_type'];
/** Setting for the later document: keeps values of the earlier one and appends to its lists. */
const MERGE_HOW = 'merge_how: list(append)+dict(no_replace,recurse_list)+str()';

/** Named repeated keys. */
const MAX_REPEATED = 10;

/** Returns likely mistakes in the cloud-configs among the parts. Pure. */
export function remarkOnCloudConfigs(parts: readonly CloudPart[]): readonly Remark[] {
  const configs = parts.filter(({ type }) => type === 'text/cloud-config');
  return [
    ...configs.flatMap(({ name, text }) => faultsOf(text).map((found) => ({ name, text: found }))),
    ...replacedKeys(configs),
  ];
}

function faultsOf(text: string): readonly string[] {
  const read = readCloudYaml(text);
  if ('problem' in read) return [`cannot be read as a cloud-config: ${read.problem.reason}`];
  const { document } = read;
  const twice = repeatedKeys(document).map(({ source, range }) => {
    const line = text.slice(0, range?.[0]).split('\n').length;
    return `the key '${source ?? ''}' is repeated at line ${line}: cloud-init uses the last one`;
  });
  const { contents } = document;
  if (isSeq(contents) || (isScalar(contents) && contents.value !== null))
    return ['cloud-init ignores it: a cloud-config is a map of keys and values'];
  const files = isMap(contents) ? contents.get('write_files') : undefined;
  const modes = isSeq(files)
    ? files.items.map((file) => (isMap(file) ? remarkOnMode(file.get('permissions', true)) : null))
    : [];
  return [...twice, ...modes.filter((remark) => remark !== null)];
}

/** Returns the first repeated keys of all maps. */
function repeatedKeys(document: Document): readonly Scalar[] {
  const found: Scalar[] = [];
  visit(document, {
    Map: (_, { items }) => {
      const seen = new Set<unknown>();
      for (const { key } of items) {
        if (!isScalar(key)) continue;
        if (seen.has(key.value)) found.push(key);
        seen.add(key.value);
      }
    },
  });
  return found.slice(0, MAX_REPEATED);
}

/**
 * Checks file permissions. cloud-init uses a number as it is and reads a text as octal
 * (cloudinit/config/cc_write_files.py, `decode_perms`). In YAML 1.1 only a number that begins with
 * 0 is octal.
 */
function remarkOnMode(mode: Scalar | undefined): string | null {
  if (mode === undefined) return null;
  const { value, source = '' } = mode;
  if (typeof value === 'string' && !/^\s*(0o)?[0-7]+\s*$/i.test(value))
    return `write_files: permissions '${value}' is not octal: cloud-init uses 0644`;
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0) return null;
  const octal = Math.trunc(value).toString(8);
  if (source.replace(/^0+(?=.)/, '') === octal) return null;
  return `write_files: permissions ${source} is a decimal number, which is the mode 0${octal}: write '0${source}' with quotes`;
}

/** Returns top-level keys that a later cloud-config replaces: cloud-init uses the last one. */
function replacedKeys(configs: readonly CloudPart[]): readonly Remark[] {
  const seen = new Map<string, { readonly name: string; readonly value: unknown }>();
  return configs.flatMap(({ name, text, hasMergeHeader }) => {
    const fields = toFields(parseCloudYaml(text));
    const isMerged = hasMergeHeader || MERGE_KEYS.some((key) => Object.hasOwn(fields, key));
    return Object.entries(fields).flatMap(([key, value]) => {
      const former = seen.get(key);
      seen.set(key, { name, value });
      const isLost = former !== undefined && !isDeepStrictEqual(former.value, value);
      if (!isLost || isMerged || MERGE_KEYS.includes(key)) return [];
      const text = `its '${key}' replaces the '${key}' of ${former.name}: to merge them, add the line '${MERGE_HOW}'`;
      return [{ name, text }];
    });
  });
}
