import { readFileSync, writeSync } from 'node:fs';
import { startupSnapshot } from 'node:v8';
import { SERVICE_IPV4 } from '#shared/contract/service-address.ts';
import { createHostClient } from './channel/host-client.ts';
import { install } from './install.ts';
import { loadHooks } from './load-hooks.ts';

/** The metadata service, on the appliance's only network. */
const SERVICE = { host: SERVICE_IPV4, port: 80 };

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
