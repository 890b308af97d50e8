import type { StepFields } from './fields.ts';

/** Lists the texts that yip renders as templates, by field and position. */
export function listTexts(fields: StepFields): readonly { name: string; text: string }[] {
  const each = (name: string, texts: readonly string[]) =>
    texts.map((text, index) => ({ name: `${name} ${index + 1}`, text }));
  const one = (name: string, text: string | undefined) =>
    text === undefined ? [] : [{ name, text }];
  return [
    ...one('if', fields.if),
    // Encoded content is not text.
    ...each(
      'files',
      fields.files.map(({ content, encoding }) => (encoding === undefined ? content : '')),
    ),
    ...each('commands', fields.commands),
    ...one('hostname', fields.hostname),
    ...each('environment', Object.values(fields.environment)),
  ];
}

export function mapTexts(
  fields: StepFields,
  render: (text: string, isHostname?: boolean) => string,
): StepFields {
  return {
    ...fields,
    ...(fields.if !== undefined && { if: render(fields.if) }),
    files: fields.files.map((file) => ({
      ...file,
      content: file.encoding === undefined ? render(file.content) : file.content,
    })),
    commands: fields.commands.map((line) => render(line)),
    ...(fields.hostname !== undefined && { hostname: render(fields.hostname, true) }),
    environment: Object.fromEntries(
      Object.entries(fields.environment).map(([key, value]) => [key, render(value)]),
    ),
  };
}
