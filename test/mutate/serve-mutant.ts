import { readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';

// Serves the changed text of one file; the checkout stays as it is.
const { url, source } = JSON.parse(readFileSync(process.env['GNT_MUTANT'] ?? '', 'utf8')) as {
  readonly url: string;
  readonly source: string;
};
registerHooks({
  load: (asked, context, next) =>
    asked === url
      ? { format: 'module-typescript', source, shortCircuit: true }
      : next(asked, context),
});
