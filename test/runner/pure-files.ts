import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

/**
 * Imports the given test files into this one process: a pure file takes longer to start than to
 * run.
 */
for (const file of process.argv.slice(2)) await import(pathToFileURL(resolve(file)).href);
