/**
 * A manual page of what a program's `--help` says, for programs that have no table of commands to
 * make one from.
 * @param help the text as printed, at most 80 columns wide where that is possible
 */
export function formatHelpPage(program: string, synopsis: string, help: string): string {
  const lines = [
    `.TH ${program.toUpperCase()} 8 "" gnt "Cluster administration"`,
    '.SH NAME',
    `${escapeRoff(program)} \\- ${escapeRoff(synopsis)}`,
    '.SH DESCRIPTION',
    '.nf',
    ...help.trimEnd().split('\n').map(escapeRoff),
    '.fi',
  ];
  return `${lines.join('\n')}\n`;
}

/** A line that roff prints as it is: neither an escape nor a request. */
function escapeRoff(line: string): string {
  return line
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replace(/^([.'])/, '\\&$1');
}
