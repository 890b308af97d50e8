import { classifyCloudDocument } from '#shared/contract/cloud-document.ts';
import { ownValue } from '#shared/json/own-value.ts';
import { type ReadYaml, readYaml } from '#shared/yaml/read-yaml.ts';
import { splitMimeMessage } from './mime-parts.ts';

/** A document as cloud-init's handlers receive it. */
export interface CloudPart {
  /** For messages: the file, and the number of the part if there are several. */
  readonly name: string;
  readonly type: string;
  readonly text: string;
  /** Its header selects how it is merged with earlier parts. */
  readonly hasMergeHeader: boolean;
}

/** Types whose content cloud-init examines to find the real type (cloudinit/user_data.py). */
const EXAMINED =
  /^(text\/plain|text\/x-not-multipart|text\/x-shellscript|application\/.*(gz|gunzip|compress).*)$/;
/** Limit of all parts: hundreds of compressed ones may each unpack to 4 MiB. */
const MAX_EXAMINED_CHARACTERS = 16 * 1024 * 1024;
const MERGE_HEADERS = ['merge-type', 'x-merge-type'];

/**
 * Returns the parts of user or vendor data from compression, MIME messages and archives. The
 * content of an include is unknown. Pure.
 */
export function splitCloudDocument(name: string, document: Buffer): readonly CloudPart[] {
  const found = classifyCloudDocument(document);
  if (found.kind === 'foreign') return [];
  let room = MAX_EXAMINED_CHARACTERS;
  const look = (type: string, bytes: Buffer): Pick<CloudPart, 'type' | 'text'> => {
    const part = room > 0 ? examine(type, bytes) : { type, text: '' };
    room -= part.text.length;
    return part;
  };
  const parts =
    found.kind === 'mime'
      ? splitMimeMessage(found.text).map(({ type, headers, bytes }) => ({
          ...look(type, bytes),
          hasMergeHeader: MERGE_HEADERS.some((header) => headers.has(header)),
        }))
      : [{ type: found.type, text: found.plain.toString(), hasMergeHeader: false }];
  const all = parts.flatMap((part) => (part.type === ARCHIVE ? explode(part.text) : [part]));
  return all.map((part, index) => ({
    name: all.length === 1 ? name : `part ${index + 1} of ${name}`,
    ...part,
  }));
}

type Unnamed = Omit<CloudPart, 'name'>;

function examine(type: string, bytes: Buffer): Pick<CloudPart, 'type' | 'text'> {
  const text = bytes.toString('utf8');
  if (!EXAMINED.test(type)) return { type, text };
  const found = classifyCloudDocument(bytes);
  return found.kind === 'known'
    ? { type: found.type, text: found.plain.toString() }
    : { type, text };
}

const ARCHIVE = 'text/cloud-config-archive';

/** Returns the parts of a `#cloud-config-archive`: texts, or maps with type and content. */
function explode(archive: string): readonly Unnamed[] {
  const entries = parseCloudYaml(archive);
  if (!Array.isArray(entries)) return [];
  return entries.flatMap((entry: unknown) => {
    const fields = typeof entry === 'string' ? { content: entry } : toFields(entry);
    const content = ownValue(fields, 'content');
    if (typeof content !== 'string') return [];
    const given = ownValue(fields, 'type');
    const found = classifyCloudDocument(Buffer.from(content));
    const type = found.kind === 'known' ? found.type : 'text/cloud-config';
    const names = Object.keys(fields).map((key) => key.toLowerCase());
    return {
      type: typeof given === 'string' ? given : type,
      text: content,
      hasMergeHeader: MERGE_HEADERS.some((header) => names.includes(header)),
    };
  });
}

/** Returns the fields of a map; none of any other value. */
export function toFields(value: unknown): Readonly<Record<string, unknown>> {
  const isFields = typeof value === 'object' && value !== null && !Array.isArray(value);
  return isFields ? { ...value } : {};
}

/** Reads a YAML document as PyYAML does, which accepts repeated keys. */
export function readCloudYaml(text: string): ReadYaml {
  return readYaml(text, { version: '1.1', uniqueKeys: false });
}

/**
 * Returns the value of a YAML document with the last of repeated keys; undefined without a value.
 */
export function parseCloudYaml(text: string): unknown {
  const read = readCloudYaml(text);
  if ('problem' in read) return undefined;
  try {
    return read.document.toJS();
  } catch {
    return undefined; // Its aliases expand to too much.
  }
}
