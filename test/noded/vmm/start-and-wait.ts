import { createHypervisor } from '../../../noded/vmm/hypervisor.ts';
import type { MachineSpec } from '../../../noded/vmm/machine.ts';
import { tinyHost } from './tiny-guest.ts';

/**
 * A node daemon that starts one machine, says so, and waits to be killed. Arguments: the directory,
 * the specification as JSON.
 */
const [vmDir = '', spec = ''] = process.argv.slice(2);
const hypervisor = createHypervisor(tinyHost(vmDir));
const machine = await hypervisor.start(JSON.parse(spec) as MachineSpec, {
  meta: { role: 'instance' },
  note: 'first',
});
process.stdout.write(`${machine.pid}\n`);
setInterval(() => undefined, 60_000);
