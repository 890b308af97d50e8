import { enableCompileCache } from 'node:module';
import { join } from 'node:path';
import { installDir } from '#shared/paths/install-dir.ts';

// Halves the start of a command. Beside the packages, where only who may change the programs may
// write; without that right, nothing is cached.
enableCompileCache(join(installDir, 'node_modules/.cache/gnt-commands'));
// No await here and below: the bundle is of CommonJS, which Node loads faster.
void import('./main-commands.ts').then(({ runProgram }) => runProgram(process));
