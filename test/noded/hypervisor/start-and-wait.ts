import { createHypervisor } from '../../../noded/hypervisor/hypervisor.ts';
import type { MachineSpec } from '../../../noded/hypervisor/machine.ts';
import { systemClock } from '#shared/clock/clock.ts';
import { silentLogger } from '#shared/log/log.ts';

/**
 * A node daemon that starts one machine, says so, and waits to be killed. Arguments: the directory,
 * the specification as JSON.
 */
const [vmDir = '', spec = ''] = process.argv.slice(2);
const hypervisor = createHypervisor({ vmDir, logger: silentLogger, clock: systemClock });
const machine = await hypervisor.start(JSON.parse(spec) as MachineSpec, {
  meta: { role: 'instance' },
  note: 'first',
});
process.stdout.write(`${machine.pid}\n`);
setInterval(() => undefined, 60_000);
