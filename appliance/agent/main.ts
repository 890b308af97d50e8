import { readFileSync, writeSync } from 'node:fs';
import { startupSnapshot } from 'node:v8';
import { z } from 'zod';
import { SERVICE_IPV4 } from '#shared/contract/service-address.ts';
import * as appError from '#shared/errors/app-error.ts';
import { ownValue } from '#shared/json/own-value.ts';
import { createHostClient } from './channel/host-client.ts';
import type { HooksModule } from './hooks/main.ts';
import { install } from './install.ts';

/** The metadata service, on the appliance's only network. */
const SERVICE = { host: SERVICE_IPV4, port: 80 };

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

function loadHooks(): HooksModule {
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

/** Reads CLOCK_BOOTTIME of /proc/uptime: hundredths of seconds since the kernel started. */
function readUptimeMs(): number {
  return Math.round(Number(readFileSync('/proc/uptime', 'utf8').split(' ')[0]) * 1000);
}

/** Writes synchronously: after a crash the console is the only record. */
function print(line: string): void {
  writeSync(1, `gnt-agent: ${line}\n`);
}

function main(): void {
  const agentStartedAtMs = readUptimeMs();
  print(`${(agentStartedAtMs / 1000).toFixed(2)} started`);
  // Set by the init script, in seconds.
  const userSpaceAt = process.env['GNT_USER_SPACE_AT'];
  install({
    host: createHostClient(SERVICE),
    print,
    uptimeMs: readUptimeMs,
    userSpaceAtMs: userSpaceAt === undefined ? null : Math.round(Number(userSpaceAt) * 1000),
    agentStartedAtMs,
    loadHooks,
    agentVersion: process.env['GNT_AGENT_VERSION'] ?? 'unknown',
  }).then(
    // Keep-alive connections would keep the process alive.
    () => process.exit(0),
    (error: unknown) => {
      print(`crashed: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
      process.exit(1);
    },
  );
}

// In the image everything above is in a V8 start-up snapshot, schemas included; only this runs at
// boot.
if (startupSnapshot.isBuildingSnapshot()) startupSnapshot.setDeserializeMainFunction(main);
else main();
