import { z } from 'zod';
import { parsePlainYaml } from './plain-yaml.ts';
import type { RootFiles } from './root-files.ts';

const field = z.string().regex(/^[^:\n\0]*$/, 'contains a colon or a line break');
const optional = field.default('');
const id = z.string().regex(/^\d{1,10}$/, 'expected a number: an installation does not choose one');
const name = field.min(1);

/** An entry of an account database, with the fields of yip's entities (mudler/entities). */
const entity = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('user'),
    username: name,
    password: field.default('x'),
    uid: id,
    gid: id,
    info: optional,
    homedir: optional,
    shell: optional,
  }),
  z.strictObject({
    kind: z.literal('shadow'),
    username: name,
    password: optional,
    last_changed: optional,
    minimum_changed: optional,
    maximum_changed: optional,
    warn: optional,
    inactive: optional,
    expire: optional,
  }),
  z.strictObject({
    kind: z.literal('group'),
    group_name: name,
    password: field.default('x'),
    gid: id,
    users: optional,
  }),
  z.strictObject({
    kind: z.literal('gshadow'),
    name,
    password: optional,
    administrators: optional,
    members: optional,
  }),
]);
type Entity = z.infer<typeof entity>;

const databases: Readonly<Record<Entity['kind'], { path: string; mode: number }>> = {
  user: { path: '/etc/passwd', mode: 0o644 },
  shadow: { path: '/etc/shadow', mode: 0o600 },
  group: { path: '/etc/group', mode: 0o644 },
  gshadow: { path: '/etc/gshadow', mode: 0o600 },
};

class NoEntity extends Error {}

export const entityText = z.string().transform((text, context) => {
  try {
    const parsed = entity.safeParse(
      parsePlainYaml(text, (reason) => new NoEntity(reason)),
      { jitless: true },
    );
    if (parsed.success) return parsed.data;
    const [issue] = parsed.error.issues;
    const where = issue?.path.join(' ') ?? '';
    context.addIssue(`invalid entity: ${where === '' ? 'kind or fields' : where}`);
  } catch (error) {
    if (!(error instanceof NoEntity)) throw error;
    context.addIssue(error.message);
  }
  return z.NEVER;
});

export interface EntityFields {
  readonly path?: string | undefined;
  readonly entity: Entity;
}

/** Replaces the entity of the same name, or appends it. Members of a group accumulate. */
export async function ensureEntity(files: RootFiles, fields: EntityFields): Promise<void> {
  await changeLines(files, fields, (lines, own) => {
    const line = formatEntity(fields.entity, lines.find(own));
    return lines.some(own) ? lines.map((other) => (own(other) ? line : other)) : [...lines, line];
  });
}

export async function deleteEntity(files: RootFiles, fields: EntityFields): Promise<void> {
  await changeLines(files, fields, (lines, own) => lines.filter((line) => !own(line)));
}

async function changeLines(
  files: RootFiles,
  { path, entity: { kind, ...values } }: EntityFields,
  change: (lines: readonly string[], isOwn: (line: string) => boolean) => readonly string[],
): Promise<void> {
  const [own = ''] = Object.values(values);
  const { mode, ...database } = databases[kind];
  await files.edit(
    path ?? database.path,
    (text) =>
      change(
        text.split('\n').filter((line) => line !== ''),
        (line) => line.split(':')[0] === own,
      )
        .map((line) => `${line}\n`)
        .join(''),
    { mode, uid: 0, gid: 0 },
  );
}

/** Formats an entity in the field order of its database. shadow(5) reserves a last field. */
function formatEntity({ kind, ...values }: Entity, former: string | undefined): string {
  const fields = Object.values(values);
  if (kind === 'shadow') fields.push('');
  if (kind === 'group' && former !== undefined) {
    const members = [former.split(':')[3] ?? '', fields[3] ?? ''].join(',').split(',');
    fields[3] = [...new Set(members.filter((member) => member !== ''))].join(',');
  }
  return fields.join(':');
}
