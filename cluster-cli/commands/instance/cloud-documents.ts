import { type Document, parseDocument } from 'yaml';
import { MAX_NETWORK_ITEMS } from '#shared/contract/static-network.ts';
import { suggest } from '#shared/errors/suggest.ts';
import { readYaml } from '#shared/yaml/read-yaml.ts';

/**
 * What a guest will make of a document that is most likely a mistake, in words. Nothing is refused:
 * what a guest takes is the guest's to say.
 */

/** First lines that cloud-init, Kairos, Ignition or systemd know (their documentation). */
const FIRST_LINES = [
  '#cloud-config',
  '#!',
  '#include',
  '#cloud-boothook',
  '#part-handler',
  '#upstart-job',
  '#systemd-userdata',
  '## template: jinja',
  'Content-Type:',
  'MIME-Version:',
  'From ',
  '{',
];
const GZIP_MAGIC = Buffer.from([0x1f, 0x8b]);
const MAX_SHOWN = 40;

/** @param bytes the whole user data of an instance that is one document */
export function remarkOnUserData(bytes: Buffer): string | null {
  if (bytes.length === 0 || bytes.subarray(0, 2).equals(GZIP_MAGIC)) return null;
  const text = bytes.toString('utf8');
  const [first = ''] = text.split('\n', 1);
  if (first.startsWith('#cloud-config') && !first.startsWith('#cloud-config-')) {
    const fault = yamlFault(text);
    return fault && `invalid cloud-config: ${fault}`;
  }
  if (FIRST_LINES.some((known) => first.startsWith(known))) return null;
  const near = suggest(first.trim().toLowerCase(), FIRST_LINES);
  return `cloud-init does not know its first line '${first.slice(0, MAX_SHOWN)}'${near === null ? '' : `; did you mean ${near}?`}`;
}

export function remarkOnNetworkConfig(bytes: Buffer): string | null {
  const text = bytes.toString('utf8');
  const fault = yamlFault(text);
  if (fault !== null) return `not YAML: ${fault}`;
  const read = readYaml(text, { version: '1.1' }, MAX_NETWORK_ITEMS);
  if ('problem' in read)
    return `the channel cannot be added, and the guest will have no metadata service: ${read.problem.reason}`;
  const given = resolved(read.document);
  if (given === null) return 'the channel cannot be added: its aliases expand to too much';
  const { config, version } = 'network' in given ? toMap(given['network']) : given;
  if (config === 'disabled')
    return 'it disables the network configuration, also of the channel: the guest will have no metadata service';
  return version === 1 || version === 2 ? null : 'cloud-init needs version 1 or 2';
}

/** @returns null when the library refuses to resolve its aliases */
function resolved(document: Document): Readonly<Record<string, unknown>> | null {
  try {
    return toMap(document.toJS());
  } catch {
    return null;
  }
}

function toMap(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

function yamlFault(text: string): string | null {
  const [error] = parseDocument(text, { version: '1.1' }).errors;
  return error === undefined ? null : (error.message.split('\n', 1)[0] ?? error.message);
}
