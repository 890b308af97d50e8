import { readFileSync } from 'node:fs';
import * as appError from '#shared/errors/app-error.ts';
import { z } from 'zod';
import { ownValue } from '#shared/json/own-value.ts';
import type { HooksModule } from './hooks/main.ts';

/**
 * A separate bundle (appliance/image/agent-bundle.ts), outside of the agent's snapshot, so that it
 * does not cost boot time.
 */
const HOOKS_BUNDLE = '/opt/gnt/hooks.cjs';

/**
 * Modules shared with the agent: errors must be of one class, and the schema library is loaded
 * already.
 */
const shared: Readonly<Record<string, unknown>> = {
  zod: { z },
  '#shared/errors/app-error.ts': appError,
};

export function loadHooks(): HooksModule {
  const { compileFunction } = process.getBuiltinModule('node:vm');
  const module: { exports: unknown } = { exports: {} };
  // A compiled function has the given parameters, which its type does not include.
  const run = compileFunction(
    readFileSync(HOOKS_BUNDLE, 'utf8'),
    ['module', 'exports', 'require'],
    { filename: HOOKS_BUNDLE },
  ) as (module: unknown, exports: unknown, require: (name: string) => unknown) => void;
  run(module, module.exports, (name) => ownValue(shared, name) ?? process.getBuiltinModule(name));
  // Built together with the agent, from this very type.
  return module.exports as HooksModule;
}
