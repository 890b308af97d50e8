import { isDeepStrictEqual } from 'node:util';
import { isMap, isScalar, isSeq, parseDocument, type Scalar } from 'yaml';
import { type CloudPart, parseCloudYaml, toFields } from '../../values/cloud-parts.ts';

/** Something in user or vendor data that is most likely a mistake; the guest still gets it. */
export interface Remark {
  /** The document or part. */
  readonly name: string;
  readonly text: string;
}

/** Keys that say how cloud-init merges a cloud-config with those before it. */
const MERGE_KEYS = ['merge_how', 'merge_type'];
/** In the later document: keeps what the earlier one says, and appends to its lists. */
const MERGE_HOW = 'merge_how: list(append)+dict(no_replace,recurse_list)+str()';

/** Returns what cloud-init will make of the cloud-configs among the parts. Pure. */
export function remarkOnCloudConfigs(parts: readonly CloudPart[]): readonly Remark[] {
  const configs = parts.filter(({ type }) => type === 'text/cloud-config');
  return [
    ...configs.flatMap(({ name, text }) => faultsOf(text).map((found) => ({ name, text: found }))),
    ...replacedKeys(configs),
  ];
}

function faultsOf(text: string): readonly string[] {
  const document = parseDocument(text, { version: '1.1' });
  const errors = document.errors.filter(({ code }) => code !== 'DUPLICATE_KEY');
  const [error] = errors;
  if (error !== undefined)
    return [`invalid cloud-config: ${error.message.split('\n', 1)[0] ?? error.message}`];
  const twice = document.errors.map(({ pos: [at] }) => {
    const key = /^[^\s:]+/.exec(text.slice(at))?.[0] ?? '';
    const line = text.slice(0, at).split('\n').length;
    return `the key '${key}' is repeated at line ${line}: cloud-init uses the last one`;
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

/**
 * A number is taken as it is and a text as octal (cloudinit/config/cc_write_files.py,
 * `decode_perms`); only a number that begins with 0 is octal in YAML 1.1.
 */
function remarkOnMode(mode: Scalar | undefined): string | null {
  if (mode === undefined) return null;
  const { value, source = '' } = mode;
  if (typeof value === 'string' && !/^\s*(0o)?[0-7]+\s*$/i.test(value))
    return `write_files: permissions '${value}' is not octal: cloud-init uses 0644`;
  if (typeof value !== 'number') return null;
  const octal = Math.trunc(value).toString(8);
  if (source.replace(/^0+(?=.)/, '') === octal) return null;
  return `write_files: permissions ${source} is a decimal number, which is the mode 0${octal}: write '0${source}' with quotes`;
}

/** cloud-init takes a top-level key from the last cloud-config that has it. */
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
