import { probeClouds } from '../../instances/identity/probe-clouds.ts';
import { type Check, loadCluster, ok, warning } from './check.ts';

const CHECK = 'cloud-credentials';

/** Finds servers for credentials of clouds that do not answer this node. */
export const checkClouds: Check = async (parts) => {
  const cluster = await loadCluster(parts);
  if (cluster?.identity === undefined || cluster.identity.policy === 'no') return [];
  const servers = await probeClouds(cluster);
  return servers.map(({ setting, problem }) =>
    problem === null
      ? ok(CHECK, `the server of ${setting} answers`)
      : warning(
          CHECK,
          `no credentials from the server of ${setting}: ${problem}`,
          `Compare the URL with gnt-cluster info; for a private certificate authority: gnt-cluster modify --image-ca @FILE`,
        ),
  );
};
