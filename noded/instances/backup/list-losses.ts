import { isReservedTag } from '#shared/contract/identity.ts';
import type { ExportRecord } from './export-record.ts';
import { parseIni } from './ini.ts';

/** Backend parameters of Ganeti that an instance has here. */
const KEPT_BACKEND = new Set(['memory', 'maxmem', 'minmem', 'vcpus']);
const KEPT_TEMPLATES = new Set(['file', 'diskless', undefined]);
const KEPT_MODES = new Set(['bridged', 'user', undefined]);

/**
 * Returns the parts of a `config.ini` of Ganeti that an import does not keep, one sentence each.
 * Pure.
 * @throws Error for a text that is no such file
 */
export function listLosses(text: string): readonly string[] {
  const { instance = {}, hypervisor = {}, backend = {} } = parseIni(text);
  const given = (value: string | undefined): string | undefined =>
    value === '' || value === 'None' ? undefined : value;
  const keysOf = (section: Readonly<Record<string, string>>): readonly string[] =>
    Object.entries(section).flatMap(([key, value]) => (given(value) === undefined ? [] : [key]));
  const template = given(instance['disk_template']);
  const hypervisorName = given(instance['hypervisor']);
  const backendKeys = keysOf(backend).filter((key) => !KEPT_BACKEND.has(key));
  const [least, most] = [instance['minmem'], instance['maxmem']];
  return [
    ...(KEPT_TEMPLATES.has(template)
      ? []
      : [
          `disk template ${template}: the disks become files${template === 'drbd' ? ', without a secondary node' : ''}`,
        ]),
    ...(hypervisorName === undefined || hypervisorName === 'kvm'
      ? []
      : [`hypervisor ${hypervisorName}: the instance runs under KVM`]),
    ...listed('hypervisor parameters', keysOf(hypervisor)),
    ...listed('backend parameters', backendKeys),
    ...(least === undefined || most === undefined || least === most
      ? []
      : [`minmem ${least}: the instance always has ${most} MiB`]),
    ...Object.entries(instance).flatMap(([key, value]) => lossOfNic(key, given(value))),
  ];
}

function listed(what: string, keys: readonly string[]): readonly string[] {
  return keys.length === 0 ? [] : [`${what}: ${keys.join(', ')}`];
}

function lossOfNic(key: string, value: string | undefined): readonly string[] {
  const [, nic, part] = /^nic(\d+)_(network|mode|vlan)$/.exec(key) ?? [];
  if (nic === undefined || value === undefined) return [];
  if (part === 'vlan') return [`VLAN ${value} of NIC ${nic}`];
  // Earlier releases of this daemon wrote JSON.
  if (part === 'network')
    return value.startsWith('{') ? [] : [`network ${value} of NIC ${nic}: it is bridged`];
  return KEPT_MODES.has(value)
    ? []
    : [`mode ${value} of NIC ${nic}: define the NICs of the instance with --net`];
}

/** Drops tags that would give an identity by the word of another host. Pure. */
export function dropReservedTags(record: ExportRecord): {
  readonly record: ExportRecord;
  readonly losses: readonly string[];
} {
  const { whole } = record;
  const keep = (tags: readonly string[]): string[] => tags.filter((tag) => !isReservedTag(tag));
  const instance = whole && { ...whole.instance, tags: keep(whole.instance.tags) };
  const all = new Set([...record.tags, ...(whole?.instance.tags ?? [])]);
  return {
    record: { ...record, tags: keep(record.tags), whole: instance && { ...whole, instance } },
    losses: [...all].filter(isReservedTag).map((tag) => `tag ${tag}: give it with --tags`),
  };
}
