import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

/**
 * Runs the test files that it is given in this one process: those that need nothing take longer to
 * begin than to end, each.
 */
for (const file of process.argv.slice(2)) await import(pathToFileURL(resolve(file)).href);
