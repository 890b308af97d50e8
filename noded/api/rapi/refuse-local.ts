import type { Opcode } from '#shared/contract/opcode.ts';
import type { Scope } from '#shared/contract/submitter.ts';
import { AppError } from '#shared/errors/app-error.ts';

/** Settings of the cluster that remote users may change. The others set their rights. */
const REMOTE_SETTINGS: ReadonlySet<string> = new Set(['opcode', 'addTags', 'removeTags']);
/** Fields that name exports on the node: these may belong to any instance. */
const LOCAL_FIELDS = ['importFrom'] as const;
/** Fields that reach beyond the instance of a bound user. */
const UNBOUND_FIELDS = ['appliance', 'hooks', 'autostart'] as const;

/**
 * Refuses operations that only root may submit, on the node's own socket.
 * @param scope the user's instances; null: all
 * @throws AppError NOT_ALLOWED
 */
export function refuseLocal(opcode: Opcode, scope: Scope | null): void {
  if (opcode.opcode === 'OS_SET_PARAMS' || opcode.opcode === 'TEST_DELAY')
    throw localOnly(opcode.opcode);
  if (opcode.opcode === 'CLUSTER_SET_PARAMS') {
    const settings = givenFields(opcode).filter((field) => !REMOTE_SETTINGS.has(field));
    if (settings.length > 0) throw localOnly(`CLUSTER_SET_PARAMS with ${settings.join(', ')}`);
  }
  const refused: readonly string[] =
    scope === null ? LOCAL_FIELDS : [...LOCAL_FIELDS, ...UNBOUND_FIELDS];
  const given = givenFields(opcode).find((field) => refused.includes(field));
  if (given !== undefined) throw localOnly(`the field ${given} of ${opcode.opcode}`);
}

/** Returns the fields with a value. A schema adds empty ones. */
function givenFields(opcode: Opcode): readonly string[] {
  return Object.entries(opcode)
    .filter(([, value]) => value !== undefined && !isEmpty(value))
    .map(([field]) => field);
}

function isEmpty(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0;
}

function localOnly(what: string): AppError {
  return new AppError('NOT_ALLOWED', `${what} is reserved for root on a node`, {
    hint: 'Run the command on a node as root.',
  });
}
