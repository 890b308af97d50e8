import type { Context } from '../../terminal/context.ts';

/** Prints `NODE:disk/N:PATH`, one per line. */
export async function runActivateDisks(
  context: Context,
  name: string,
  options: { readonly json?: boolean },
): Promise<void> {
  const client = await context.client();
  const [instance, disks] = await Promise.all([
    client.ask('GET /v1/instances/{name}', { name }),
    client.ask('GET /v1/instances/{name}/disks', { name }),
  ]);
  if (options.json) {
    context.print(JSON.stringify(disks, null, 2));
    return;
  }
  for (const { index, path } of disks) {
    context.print(`${instance.primaryNode}:disk/${index}:${path}`);
  }
  if (disks.length === 0) context.note(`${name} has no disks`);
  else if (instance.running !== null) {
    context.warn(`${name} is running: writing to its disks destroys their data`);
  }
}

export async function runReplaceToken(context: Context, name: string): Promise<void> {
  const client = await context.client();
  await client.ask('DELETE /v1/instances/{name}/tokens', { name });
  context.note(`all session tokens of ${name} are invalid; the guest must request new ones`);
}
