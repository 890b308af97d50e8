import type { Contents } from '../content-keys.ts';
import { allOptions, type CommandNode } from './command-tree.ts';
import { type Line, splitMarkdown } from './markdown.ts';

type Tree = ReadonlyMap<string, CommandNode>;

/** A placeholder for a subcommand: `NAME`, `<name>`, `[options]`, `…`, `$name`. */
const PLACEHOLDER = /^(?:[^a-z]|[a-z]*[<[$"'(=:…{/.@*])/;
/**
 * Options of V8, Anaconda and this project's own tools, which documents name without their program.
 */
const FOREIGN = new Set([
  '--optimize-for-size',
  '--proxy',
  '--seed',
  '--target',
  '--cases',
  '--guests',
]);
/** Ends the words of one command. */
const END = /^(?:\||\|\||&&|;|&|--|\)|>|>>|<|2>.*|#.*|then|do)$/;

/** Finds commands and options in documents that no program has. */
export function findUnknownCommands(contents: Contents, tree: Tree): readonly string[] {
  const options = allOptions(tree);
  return [...contents].flatMap(([path, text]) => {
    if (!path.endsWith('.md') || path.startsWith('fixtures/')) return [];
    return codeOf(ownText(path, text)).flatMap(({ number, text: line }) =>
      judgeCode(line, tree, options).map((problem) => `${path}:${number}: ${problem}`),
    );
  });
}

/**
 * Removes the commands of other products from pages about migration: they are in the first cell of
 * a row, and after a prompt with the product's name. A page of the reference consists of them; its
 * own test asks the parser.
 */
function ownText(path: string, text: string): string {
  if (path === 'docs/reference/ganeti-commands.md') return '';
  if (!path.startsWith('docs/migrate-from/')) return text;
  return text.replaceAll(/^\|(?:[^|\n]|\\\|)*\|/gm, '|').replaceAll(/^[a-z]+[#$] .*$/gm, '');
}

/** Returns the lines of code blocks, joined with their continuations, and code spans. */
function codeOf(text: string): readonly Line[] {
  const { blocks, prose } = splitMarkdown(text);
  const spans = prose.flatMap(({ number, text: line }) =>
    [...line.matchAll(/(`+)(.+?)\1/g)].map(([, , span = '']) => ({
      number,
      // Tables escape bars.
      text: span.trim().replaceAll('\\|', '|'),
    })),
  );
  return [...blocks.flatMap(({ lines }) => joinContinuations(lines)), ...spans];
}

function joinContinuations(lines: readonly Line[]): readonly Line[] {
  const joined: Line[] = [];
  for (const line of lines) {
    const last = joined.at(-1);
    if (last?.text.endsWith('\\'))
      joined[joined.length - 1] = {
        ...last,
        text: `${last.text.slice(0, -1)} ${line.text.trim()}`,
      };
    else joined.push(line);
  }
  return joined;
}

function judgeCode(line: string, tree: Tree, options: ReadonlySet<string>): readonly string[] {
  const found = [...line.matchAll(/(?<![\w./-])(gnt-[a-z]+)(?![\w./(-]|@)/g)];
  if (found.length === 0) {
    // A span that consists of one option.
    const [option] = /^--[a-z][\w-]+(?=$|[ =])/.exec(line) ?? [];
    return option === undefined || options.has(option) || FOREIGN.has(option)
      ? []
      : [`no program has ${option}`];
  }
  return found.flatMap(({ 0: all, 1: program = '', index }) => {
    const node = tree.get(program);
    return node === undefined
      ? []
      : judgeWords(program, node, wordsOf(line.slice(index + all.length)));
  });
}

/** Splits a shell line up to the end of the command. Quoted words count as one. */
function wordsOf(rest: string): readonly string[] {
  const words = rest.match(/(?:"[^"]*"|'[^']*'|[^\s"'])+/g) ?? [];
  const end = words.findIndex((word) => END.test(word) || /[;)]$/.test(word) || /^gnt-/.test(word));
  if (end === -1) return words;
  const last = words[end] ?? '';
  return [...words.slice(0, end), ...(/^[\w|-]+[;)]$/.test(last) ? [last.slice(0, -1)] : [])];
}

function judgeWords(
  program: string,
  node: CommandNode,
  words: readonly string[],
): readonly string[] {
  const hasCommands = node.commands.size > 0;
  const at = hasCommands ? words.findIndex((word) => !word.startsWith('-')) : -1;
  const word = (words[at] ?? '').replace(/[,.:]$/, '');
  const isNamed = at !== -1 && word !== '' && !PLACEHOLDER.test(word);
  const names = isNamed ? word.split('|').filter((name) => /^[a-z]/.test(name)) : [];
  const unknown = names.find((name) => !node.commands.has(name));
  if (unknown !== undefined) return [`${program} has no command '${unknown}'`];
  const nodes = names.flatMap((name) => node.commands.get(name) ?? []);
  const judged = nodes.length > 0 ? nodes : [node];
  if (hasCommands && nodes.length === 0 && words.length > 0 && at !== -1) return [];
  return ownWords(words, judged).flatMap((each) => {
    const [option] = /^--?[a-zA-Z][\w-]*/.exec(each) ?? [];
    if (option === undefined || !option.startsWith('--')) return [];
    return judged.some(({ options }) => options.has(option))
      ? []
      : [`${[program, ...names.slice(0, 1)].join(' ')} has no option ${option}`];
  });
}

/** Returns the words before a command for the guest. */
function ownWords(words: readonly string[], nodes: readonly CommandNode[]): readonly string[] {
  if (!nodes.some(({ isForGuest }) => isForGuest)) return words;
  const positionals = words.flatMap((word, index) => (word.startsWith('-') ? [] : [index]));
  // After the subcommand and the instance comes the guest's command.
  return words.slice(0, positionals[2] ?? words.length);
}
