import { Command } from 'commander';
import { BUILT_APPLIANCE } from '#shared/contract/appliance-manifest.ts';

export interface BuildFlags {
  readonly progressJson?: boolean;
  readonly force?: boolean;
  readonly mirror?: string;
  readonly hooks?: string;
}

interface ListFlags {
  readonly json?: boolean;
}

export interface ApplianceActions {
  build(flags: BuildFlags): Promise<void>;
  info(flags: ListFlags): Promise<void>;
  verify(): Promise<void>;
  import(source: string, flags: { readonly name?: string }): Promise<void>;
  list(flags: ListFlags): Promise<void>;
  use(name: string): Promise<void>;
  remove(name: string): Promise<void>;
}

export function createApplianceProgram(actions: ApplianceActions): Command {
  const program = new Command('gnt-appliance')
    .description('Builds and checks the read-only VM in which installations run.')
    .option('--debug', 'add the trace to errors')
    // Subcommands inherit both.
    .exitOverride()
    .configureOutput({ writeErr: () => undefined });
  program
    .command('build')
    .description('build the appliance from Debian packages, or take it from the build cache')
    .option('--progress-json', 'print progress as JSON, one object per line')
    .option('--force', 'build even if the cache has the appliance')
    .option('--mirror <url>', 'Debian mirror (default: the mirror of the host)')
    .option(
      '--hooks <folder>',
      'add the hook documents (*.yaml) to this and later builds; `none` removes them',
    )
    .action((flags: BuildFlags) => actions.build(flags));
  program
    .command('info')
    .description('show kernel, packages, hooks and files of the appliance')
    .option('--json', 'print the manifest as JSON')
    .action((flags: ListFlags) => actions.info(flags));
  program
    .command('verify')
    .description('compare the files of the appliance with its manifest')
    .action(() => actions.verify());
  program
    .command('import')
    .description('import an appliance from a folder or tar archive after checking its manifest')
    .argument('<source>', 'folder or tar archive with manifest.json and its files')
    .option('--name <name>', 'name of the appliance (default: name of the source)')
    .action((source: string, flags: { name?: string }) => actions.import(source, flags));
  program
    .command('list')
    .description('list the appliances of this node; `*` marks the one in use')
    .option('--json', 'print JSON')
    .action((flags: ListFlags) => actions.list(flags));
  program
    .command('use')
    .description('set the appliance of all future installations of the cluster')
    .argument('<name>', `name of an imported appliance, or ${BUILT_APPLIANCE}`)
    .action((name: string) => actions.use(name));
  program
    .command('remove')
    .description('remove an imported appliance that is not in use from this node')
    .argument('<name>', 'name as in `gnt-appliance list`')
    .action((name: string) => actions.remove(name));
  return program;
}
