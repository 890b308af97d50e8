import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from '#shared/process/run.ts';

interface Licensed {
  readonly name: string;
  readonly version: string;
  readonly license: string;
}

/**
 * Collects the licences of gnt, Node, and the npm packages in the bundles, each text once.
 * @param home folder with the npm packages
 */
export async function collectLicences(project: Licensed, home: string): Promise<string> {
  const { stdout } = await run('npm', ['ls', '--omit=dev', '--all', '--parseable'], { cwd: home });
  const packagesByText = new Map([['', [`gnt ${project.version}: ${project.license}`]]]);
  for (const folder of [...new Set(stdout.split('\n'))].filter((path) => path !== home).sort()) {
    const [file] = (await readdir(folder)).filter((name) => /^licen[cs]e/i.test(name));
    // A package's own file, which names its licence.
    const { name, version, license } = JSON.parse(
      await readFile(join(folder, 'package.json'), 'utf8'),
    ) as Licensed;
    const text = file === undefined ? '' : await readFile(join(folder, file), 'utf8');
    packagesByText.getOrInsert(text.trim(), []).push(`${name} ${version}: ${license}`);
  }
  const texts = [...packagesByText].map(([text, packages]) =>
    [...packages, '', text].join('\n').trim(),
  );
  return `${texts.join(`\n\n${'-'.repeat(78)}\n`)}\n`;
}
