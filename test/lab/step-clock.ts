import { readFileSync } from 'node:fs';

/**
 * Loaded before a program (`--import`): its clock is ahead of the real one by so many milliseconds
 * as a file says at that moment. Time namespaces have no such clock.
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
