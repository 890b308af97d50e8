import type { Silence } from '#shared/contract/boot-silence.ts';
import type { BootReporting } from '#shared/contract/boot-report.ts';
import { parseJson } from '#shared/json/parse-json.ts';
import { type CloudPart, parseCloudYaml, toFields } from './cloud-parts.ts';

/** The type of the part that reports the boot. */
const REPORTER = 'text/cloud-boothook';
/** cloud-init's words for true in `vendor_data` (cloudinit/util.py, `is_true`). */
const TRUE = ['true', '1', 'on', 'yes'];

interface Documents {
  readonly userData: readonly CloudPart[];
  readonly vendorData: readonly CloudPart[];
}

/**
 * Returns why the documents keep a stock cloud-init from reporting its boot, or null. The content
 * of includes, and of templates that are not YAML, is unknown. Pure.
 */
export function explainSilentDocuments(
  { userData, vendorData }: Documents,
  reporting: BootReporting,
): Silence | null {
  const ofUser = mergeConfigs(userData);
  const merged = { ...mergeConfigs(vendorData), ...ofUser };
  if (isTrue(merged['disable_ec2_metadata'])) {
    return {
      reason: 'disable_ec2_metadata makes the guest reject the route to the metadata service',
      hint: 'Remove disable_ec2_metadata from the document',
    };
  }
  if (reporting !== 'vendor-data' || !Object.hasOwn(ofUser, 'vendor_data')) return null;
  const why = whyVendorDataIsOff(ofUser['vendor_data']);
  if (why === null) return null;
  return {
    reason: `${why}, and vendor data asks cloud-init for the report`,
    hint: 'Give -H boot_report=user-data, or remove vendor_data from the user data',
  };
}

/** Returns why vendor data is off, or null, as `_consume_vendordata` of cloudinit/stages.py. */
function whyVendorDataIsOff(setting: unknown): string | null {
  const off = 'vendor_data in the user data turns vendor data off';
  if (typeof setting !== 'object' || setting === null || Array.isArray(setting)) return off;
  const { enabled = true, disabled_handlers: disabled } = toFields(setting);
  if (!isTrue(enabled)) return off;
  const isHandled = !(Array.isArray(disabled) || typeof disabled === 'string')
    ? true
    : !disabled.includes(REPORTER);
  return isHandled ? null : `vendor_data in the user data disables ${REPORTER}`;
}

function isTrue(value: unknown): boolean {
  if (typeof value === 'boolean') return value;
  const isWord = typeof value === 'string' || typeof value === 'number';
  return isWord && TRUE.includes(String(value).toLowerCase().trim());
}

/** Merges top-level keys of all cloud-configs, the last of each, as cloud-init does by default. */
function mergeConfigs(parts: readonly CloudPart[]): Readonly<Record<string, unknown>> {
  return Object.fromEntries(parts.flatMap((part) => Object.entries(readConfig(part))));
}

function readConfig({ type, text }: CloudPart): Readonly<Record<string, unknown>> {
  if (type === 'text/cloud-config') return toFields(parseCloudYaml(text));
  if (type === 'text/cloud-config-jsonp') return readPatch(text);
  const [, config = ''] = /^\s*## template: jinja.*\n(\s*#cloud-config\b[^]*)/i.exec(text) ?? [];
  return toFields(parseCloudYaml(config));
}

/** Returns the top-level keys that a JSON patch (RFC 6902) adds. */
function readPatch(text: string): Readonly<Record<string, unknown>> {
  const operations = parseJson(text.trimStart().replace(/^#cloud-config-jsonp/i, ''));
  if (!Array.isArray(operations)) return {};
  const entries = operations.map(toFields).flatMap(({ op, path, value }) => {
    if (typeof path !== 'string') return [];
    const [, key, inner] = /^\/([^/]+)(?:\/([^/]+))?$/.exec(path) ?? [];
    if (key === undefined || (op !== 'add' && op !== 'replace')) return [];
    return [[key, inner === undefined ? value : { [inner]: value }] as const];
  });
  return Object.fromEntries(entries);
}
