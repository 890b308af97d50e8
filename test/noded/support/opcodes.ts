import { opcode, type Opcode, type OpcodeInput, type OpcodeOf } from '#shared/contract/opcode.ts';

/** Opcodes as the API hands them on: with their defaults. */
export function parseOpcode(input: OpcodeInput): Opcode {
  return opcode.parse(input);
}

type CreateInput = Extract<OpcodeInput, { opcode: 'INSTANCE_CREATE' }>;
type ReinstallInput = Extract<OpcodeInput, { opcode: 'INSTANCE_REINSTALL' }>;
type ModifyInput = Extract<OpcodeInput, { opcode: 'INSTANCE_SET_PARAMS' }>;

export function createOpcode(
  input: Partial<Omit<CreateInput, 'opcode'>> = {},
): OpcodeOf<'INSTANCE_CREATE'> {
  const parsed = parseOpcode({ opcode: 'INSTANCE_CREATE', name: 'web1.example.com', ...input });
  if (parsed.opcode !== 'INSTANCE_CREATE') throw new Error('not an INSTANCE_CREATE');
  return parsed;
}

export function reinstallOpcode(
  input: Partial<Omit<ReinstallInput, 'opcode'>> = {},
): OpcodeOf<'INSTANCE_REINSTALL'> {
  const parsed = parseOpcode({ opcode: 'INSTANCE_REINSTALL', name: 'web1.example.com', ...input });
  if (parsed.opcode !== 'INSTANCE_REINSTALL') throw new Error('not an INSTANCE_REINSTALL');
  return parsed;
}

export function modifyOpcode(
  input: Partial<Omit<ModifyInput, 'opcode'>> = {},
): OpcodeOf<'INSTANCE_SET_PARAMS'> {
  const parsed = parseOpcode({ opcode: 'INSTANCE_SET_PARAMS', name: 'web1.example.com', ...input });
  if (parsed.opcode !== 'INSTANCE_SET_PARAMS') throw new Error('not an INSTANCE_SET_PARAMS');
  return parsed;
}
