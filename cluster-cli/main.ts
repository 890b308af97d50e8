import { enableCompileCache } from 'node:module';
import { join } from 'node:path';
import { installDir } from '#shared/paths/install-dir.ts';

// Halves the start time of a command. The cache is beside the packages, where only users with write
// access to the programs can write. Without that access, nothing is cached.
enableCompileCache(join(installDir, 'node_modules/.cache/gnt-commands'));
// No await here and below: the bundle is CommonJS, which Node loads faster.
void import('./main-commands.ts').then(({ runProgram }) => runProgram(process));
