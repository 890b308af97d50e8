import { join } from 'node:path';
import { run } from '#shared/process/run.ts';
import { debianTree } from '../../lab/cached-tree.ts';

const LEFT_OUT = ['man', 'doc', 'locale'].map((name) => `/usr/share/${name}/*`);

/** Returns a Debian root with the command `aws`. */
export function awsCliTree(): Promise<string> {
  return debianTree('aws-cli', ['awscli'], LEFT_OUT);
}

/**
 * Makes a personalization package with the command `aws` for a Debian 12, as `python3 -m awscli`
 * with its modules in /opt/aws.
 * @returns its path, in `directory`
 */
export async function packAwsCli(directory: string): Promise<string> {
  const archive = join(directory, 'aws-cli.tar.gz');
  await run('tar', [
    ...['--owner=0', '--group=0', '--transform=s,^\\.,opt/aws,', '-czf', archive],
    ...['--exclude=__pycache__', '--exclude=./awscli/examples'],
    ...['-C', join(await awsCliTree(), 'usr/lib/python3/dist-packages'), '.'],
  ]);
  return archive;
}
