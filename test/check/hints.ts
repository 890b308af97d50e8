import type { Command } from 'commander';
import typescript from 'typescript';

/** A string of the source that may name commands. `X` replaces each value of a template. */
export interface Hint {
  /** `noded/provision/os/choose-scripts.ts:55`. */
  readonly place: string;
  readonly text: string;
  /** Whether the string is the value of a property `hint`. */
  readonly isHint: boolean;
  /** Whether it is a whole hint, rather than part of an expression. */
  readonly isWhole: boolean;
}

const NAMES_COMMAND = /\bgnt-(instance|backup|image|os|cluster|node|job|profile|network|bootenv)\b/;

/** Returns the hints of a source file, and its other strings that name a command. */
export function collectHints(path: string, source: string): readonly Hint[] {
  const file = typescript.createSourceFile(path, source, typescript.ScriptTarget.Latest, true);
  const found: Hint[] = [];
  const visit = (node: typescript.Node, isHint: boolean): void => {
    const isInHint =
      isHint || (typescript.isPropertyAssignment(node) && node.name.getText(file) === 'hint');
    const text = textOf(node);
    if (text !== null && (isInHint || NAMES_COMMAND.test(text))) {
      const { line } = file.getLineAndCharacterOfPosition(node.getStart(file));
      const place = `${path}:${line + 1}`;
      found.push({ place, text, isHint: isInHint, isWhole: isWholeHint(node) });
    }
    // Values within a template are expressions with strings of their own.
    node.forEachChild((child) => visit(child, isInHint));
  };
  visit(file, false);
  return found;
}

/** Tells whether the node is the value of a property `hint`, or one branch of it. */
function isWholeHint(node: typescript.Node): boolean {
  const { parent } = node;
  if (typescript.isPropertyAssignment(parent)) return parent.initializer === node;
  if (typescript.isParenthesizedExpression(parent)) return isWholeHint(parent);
  if (typescript.isConditionalExpression(parent))
    return parent.condition !== node && isWholeHint(parent);
  return false;
}

function textOf(node: typescript.Node): string | null {
  if (typescript.isStringLiteral(node) || typescript.isNoSubstitutionTemplateLiteral(node))
    return node.text;
  if (!typescript.isTemplateExpression(node)) return null;
  return node.head.text + node.templateSpans.map(({ literal }) => `X${literal.text}`).join('');
}

/** Options of every program. */
const COMMON = ['--help', '--help-all', '--version'];
/** Other projects' programs, which are followed by their own options. */
const FOREIGN =
  /\b(cloud-init|dnsmasq|gpg|lvchange|lvcreate|minisign|systemctl|systemd-run|udevadm|useradd|vgchange|zstd)\b.*/;

/**
 * Returns the commands and options in a text that do not exist, such as `gnt-instance modify
 * --bogus`.
 * @param ofDaemons long options of gnt-noded and gnt-metad
 */
export function findUnknown(
  { text, isHint }: Hint,
  programs: ReadonlyMap<string, Command>,
  ofDaemons: readonly string[] = [],
): readonly string[] {
  const faults: string[] = [];
  // A command ends where the sentence continues, or where the next command begins.
  for (const part of text.split(/[;|&()\n]|, |: |\. |`|'|"| or | then | and |(?=\bgnt-)/)) {
    const [, name, word] = /^(gnt-[a-z]+)(?: +([a-z][a-z-]*))?/.exec(part.trim()) ?? [];
    const program = name === undefined ? undefined : programs.get(name);
    const command = program && findCommand(program, word);
    if (program !== undefined && word !== undefined && command === undefined) {
      if (isCommandWord(part, word)) faults.push(`${name} ${word}`);
      continue;
    }
    if (name !== undefined && program === undefined) continue;
    if (command === undefined && program === undefined && !isHint) continue;
    const shared = command === undefined ? [...COMMON, ...ofDaemons] : COMMON;
    const known = command ? [command] : [...programs.values()].flatMap((each) => each.commands);
    const own = part.replace(FOREIGN, '');
    for (const [, option = ''] of own.matchAll(/(?:^|[\s(])(--[a-z][a-z-]+)(?=[\s=,.)]|$)/g))
      if (!shared.includes(option) && !known.some((each) => hasOption(each, option)))
        faults.push(`${command ? `${name} ${word} ` : ''}${option}`);
  }
  return faults;
}

/** Tells a command from prose: `gnt-instance list` from `gnt-node has`. */
function isCommandWord(part: string, word: string): boolean {
  return part.includes(' --') || / [A-Z]{2,}\b/.test(part) || /-/.test(word);
}

function findCommand(program: Command, word: string | undefined): Command | undefined {
  return program.commands.find(
    (each) => each.name() === word || each.aliases().includes(word ?? ''),
  );
}

function hasOption(command: Command, option: string): boolean {
  return command.options.some(({ long }) => long === option || long === `--no-${option.slice(2)}`);
}
