import { readFileSync } from 'node:fs';

/**
 * Preloaded with `--import`: a file contains the milliseconds by which the program's clock is ahead
 * of the real one. Time namespaces do not have CLOCK_REALTIME.
 */
const file = process.env['GNT_TEST_CLOCK'];
if (file !== undefined) {
  const RealDate = Date;
  const now = (): number => RealDate.now() + Number(readFileSync(file, 'utf8'));
  globalThis.Date = new Proxy(RealDate, {
    construct: (target, args: ConstructorParameters<DateConstructor> | []) =>
      args.length === 0 ? new target(now()) : Reflect.construct(target, args),
    get: (target, name): unknown => (name === 'now' ? now : Reflect.get(target, name)),
  });
}
