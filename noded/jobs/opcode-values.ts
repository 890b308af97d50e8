import type { Opcode } from '#shared/contract/opcode.ts';

type Values = Readonly<Record<string, string | null>>;

/** Returns the values of an opcode that no record, log or answer may show. */
export function listOpcodeValues(opcode: Opcode): readonly string[] {
  const tables: readonly Values[] = [
    'osParametersPrivate' in opcode ? opcode.osParametersPrivate : {},
    'osParametersSecret' in opcode ? opcode.osParametersSecret : {},
    'inputs' in opcode ? opcode.inputs : {},
  ];
  const password = 'personalizationPassword' in opcode ? opcode.personalizationPassword : undefined;
  return [...tables.flatMap((table) => Object.values(table)), password].filter(
    (value) => value != null,
  );
}
