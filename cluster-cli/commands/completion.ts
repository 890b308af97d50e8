import { listVariants } from '#shared/contract/os-variants.ts';
import type { Command } from 'commander';
import { AppError } from '#shared/errors/app-error.ts';
import type { CompletionKind } from '../completion/command.ts';
import { referenceOf } from '../fields/image-fields.ts';
import type { CompletionWord } from '../completion/complete.ts';
import type { Context } from '../terminal/context.ts';
import { COMPLETION_WORDS } from '../completion/completion-words.ts';
import { addCommand, describeProgram, option } from '../completion/command.ts';

/** Adds the hidden commands of every program: shell completion and the manual page. */
export function addCompletion(program: Command, context: Context): void {
  const name = program.name();
  describeProgram(program, [
    `Options of a command: ${name} COMMAND --help.`,
    `Shell completion: source <(${name} completion bash), or zsh, or fish. Manual page: ${name} man.`,
  ]);
  addCommand(program, {
    usage: 'completion <shell>',
    arguments: { shell: 'bash, zsh or fish' },
    summary: 'Print a completion script for a shell',
    description: `For bash: source <(${name} completion bash).`,
    isHidden: true,
  }).action(async (given: string) => {
    const { completionScript, shells } = await import('../completion/shell-scripts.ts');
    const shell = shells.find((each) => each === given);
    if (!shell) {
      throw new AppError('USAGE', `shell '${given}' is not supported`, {
        hint: `${program.name()} completion ${shells[0]}; supported are ${shells.join(', ')}`,
      });
    }
    context.print(completionScript(shell, program.name()).trimEnd());
  });
  addCommand(program, {
    usage: `${COMPLETION_WORDS} [words...]`,
    summary: 'Print the words that can stand in place of the last one',
    options: [option('--plain', 'Print no descriptions', { group: 'Output:' })],
    isHidden: true,
  }).action(async (words: readonly string[], options: { plain?: boolean }) => {
    for (const { word, description } of await findWords(program, context, words)) {
      const isFile = word === ':file';
      const text = options.plain && !isFile ? '' : description;
      context.print(text === '' ? word : `${word}\t${text}`);
    }
  });
  addCommand(program, {
    usage: 'man [command]',
    arguments: { command: 'Command (default: the program)' },
    summary: 'Print a manual page',
    isHidden: true,
  }).action(async (given: string | undefined) => {
    const { renderMan } = await import('../manual/render-man.ts');
    const { commandPage, programPage } = await import('../manual/command-pages.ts');
    const command = program.commands.find((each) => each.name() === given);
    if (given !== undefined && command === undefined)
      throw new AppError('USAGE', `${program.name()} has no command '${given}'`, {
        hint: `${program.name()} --help`,
      });
    const page = command === undefined ? programPage(program) : commandPage(program, command);
    const date = new Date(context.clock.now()).toISOString().slice(0, 10);
    context.print(renderMan(page, date).trimEnd());
  });
}

async function findWords(
  program: Command,
  context: Context,
  words: readonly string[],
): Promise<readonly CompletionWord[]> {
  const { complete } = await import('../completion/complete.ts');
  const found = complete(program, words.length > 0 ? words : ['']);
  if (found.kind === 'words') return found.words;
  if (found.kind === 'file') return [{ word: ':file', description: found.prefix }];
  const names = await loadNames(context, found.kind);
  const start = words.at(-1) ?? '';
  return names
    .map(({ word, description }) => ({ word: `${found.prefix}${word}`, description }))
    .filter(({ word }) => word.startsWith(start));
}

async function loadNames(
  context: Context,
  kind: Exclude<CompletionKind, 'file'>,
): Promise<readonly CompletionWord[]> {
  const client = await context.client();
  switch (kind) {
    case 'instance':
      return (await Array.fromAsync(client.instanceSummaries(['name', 'status'])))
        .flat()
        .map(({ name, status }) => ({ word: name, description: status }));
    case 'node':
      return (await client.ask('GET /v1/nodes')).map((node) => ({
        word: node.name,
        description: '',
      }));
    case 'image':
      return (await client.ask('GET /v1/images')).map((image) => ({
        word: referenceOf(image),
        description: image.title,
      }));
    case 'catalogue':
      return (await client.ask('GET /v1/catalogues')).map(({ name, source }) => ({
        word: name,
        description: source,
      }));
    case 'network':
      return (await client.ask('GET /v1/networks')).map(({ name, network }) => ({
        word: name,
        description: network,
      }));
    case 'profile':
      return (await client.ask('GET /v1/profiles')).map(({ name }) => ({
        word: name,
        description: '',
      }));
    case 'bootenv':
      return (await client.ask('GET /v1/bootenvs')).map(({ name, osName }) => ({
        word: name,
        description: osName,
      }));
    case 'job':
      return (await client.ask('GET /v1/jobs')).map((job) => ({
        word: String(job.id),
        description: `${job.status} ${job.summary}`,
      }));
    case 'os':
      return (await client.ask('GET /v1/os'))
        .flatMap(listVariants)
        .filter((os) => os.valid && !os.hidden)
        .map(({ listed }) => ({ word: listed, description: '' }));
  }
}
