import type { Document } from 'yaml';
import { z } from 'zod';
import { AppError, systemCodeOf } from '#shared/errors/app-error.ts';
import { readBounded } from '#shared/files/read-bounded.ts';
import { readYaml } from '#shared/yaml/read-yaml.ts';

const MAX_BYTES = 64 * 1024;
const launch = z.strictObject({
  size: z.string().optional(),
  memory: z.string().optional(),
  vcpus: z.number().int().positive().optional(),
  /** The list of `--net 0:`, or `no-nics`. */
  net: z.string().max(1000).optional(),
  ssh_keys: z.string().array().max(100).optional(),
});
/** A user's defaults of `launch`. */
export type UserDefaults = z.infer<typeof launch>;
const document = z.strictObject({ launch: launch.optional() }).nullable();

/**
 * Reads the user's own settings; none without a file.
 * @throws AppError VALIDATION naming the file and the field, FILE_UNREADABLE
 */
export async function readUserDefaults(path: string): Promise<UserDefaults> {
  let text: string;
  try {
    text = (await readBounded(path, MAX_BYTES)).toString('utf8');
  } catch (error) {
    const code = systemCodeOf(error);
    if (code === 'ENOENT' || code === 'ENOTDIR') return {};
    throw new AppError('FILE_UNREADABLE', `${path} cannot be read: ${code ?? 'unknown'}`, {
      hint: `Check the permissions: ls -l ${path}`,
      cause: error,
    });
  }
  const refuse = (reason: string): AppError =>
    new AppError('VALIDATION', `${path}: ${reason}`, {
      hint: 'Write as in launch: {size: 20G, memory: 2G, vcpus: 2, net: "mode=bridged,link=br0"}',
    });
  const yaml = readYaml(text);
  if ('problem' in yaml) throw refuse(yaml.problem.reason);
  const parsed = document.safeParse(valueOf(yaml.document, refuse));
  if (parsed.success) return parsed.data?.launch ?? {};
  const [issue] = parsed.error.issues;
  throw refuse(`${issue?.path.join('.') ?? ''}: ${issue?.message ?? ''}`);
}

function valueOf(document: Document, refuse: (reason: string) => AppError): unknown {
  try {
    return document.toJS({ maxAliasCount: 0 });
  } catch {
    throw refuse('aliases are not allowed');
  }
}
