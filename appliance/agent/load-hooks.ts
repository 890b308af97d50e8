import { readFileSync } from 'node:fs';
import * as appError from '#shared/errors/app-error.ts';
import { z } from 'zod';
import { ownValue } from '#shared/json/own-value.ts';
import type { HooksModule } from './hooks/main.ts';

/**
 * A bundle of its own (appliance/image/agent-bundle.ts): it is not in the agent's snapshot, so that
 * it costs no boot time.
 */
const HOOKS_BUNDLE = '/opt/gnt/hooks.cjs';

/**
 * Modules that the bundle shares with the agent: errors must be of one class, and schemas are there
 * already.
 */
const shared: Readonly<Record<string, unknown>> = {
  zod: { z },
  '#shared/errors/app-error.ts': appError,
};

export function loadHooks(): HooksModule {
  const { compileFunction } = process.getBuiltinModule('node:vm');
  const module: { exports: unknown } = { exports: {} };
  // A compiled function has the parameters that it was given, which its type does not say.
  const run = compileFunction(
    readFileSync(HOOKS_BUNDLE, 'utf8'),
    ['module', 'exports', 'require'],
    { filename: HOOKS_BUNDLE },
  ) as (module: unknown, exports: unknown, require: (name: string) => unknown) => void;
  run(module, module.exports, (name) => ownValue(shared, name) ?? process.getBuiltinModule(name));
  // Built together with the agent, from this very type.
  return module.exports as HooksModule;
}
