import { Counter, type Registry } from 'prom-client';

/** Adds a metric of the processor time that this process has used. */
export function countCpuSeconds(name: string, help: string, registers: Registry[]): void {
  new Counter({
    name,
    help,
    registers,
    collect() {
      const { user, system } = process.cpuUsage();
      this.reset();
      this.inc((user + system) / 1_000_000);
    },
  });
}
