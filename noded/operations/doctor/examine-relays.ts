import { type Check, loadCluster, ok, warning } from './check.ts';

const CHECK = 'relays';

/** Finds relays without a secret, which refuse all requests of guests. */
export const checkRelays: Check = async (parts) => {
  const cluster = await loadCluster(parts);
  const { relays = {} } = cluster ?? {};
  const count = Object.keys(relays).length;
  if (count === 0) return [];
  const missing = parts.guests.relays.listMissing({ relays });
  if (missing.length === 0) return ok(CHECK, `this node has the secrets of ${count} relay(s)`);
  return missing.map((name) =>
    warning(
      CHECK,
      `this node has no secret for relay '${name}': guests get status 410`,
      `gnt-cluster set-relay-secret ${name}`,
    ),
  );
};
