import type { ClusterRecord } from '#shared/contract/api.ts';
import { instanceName } from '#shared/contract/primitives.ts';
import { AppError, isAppError } from '#shared/errors/app-error.ts';
import { silentLogger } from '#shared/log/log.ts';
import type { RootPaths } from '#shared/paths/root-paths.ts';
import { fingerprintOf, loadClusterKeys } from '#shared/store/cluster-keys.ts';
import { ensureCluster, openSealedRedis } from '#shared/cluster/cluster-store.ts';
import { makeClusterKey, ringOf } from '#shared/store/sealed-store.ts';
import {
  readClusterKey,
  readStoreChoice,
  writeClusterKey,
  writeStoreChoice,
} from '#shared/store/store-choice.ts';
import { describeStoreUrl } from '#shared/store/store-url.ts';
import type { Store } from '#shared/store/store.ts';
import type { Context } from '../../terminal/context.ts';
import { claimReplaceableStore } from './replace-embedded.ts';

/**
 * Returns the common store of a root, as `gnt-cluster info` shows it; null: none.
 * @throws AppError FILE_UNREADABLE
 */
export async function findCommonStore(paths: RootPaths): Promise<string | null> {
  const choice = await readStoreChoice(paths);
  return choice === undefined ? null : describeStoreUrl(choice.url);
}

/**
 * Creates a cluster in an empty store, or joins the cluster in it, and writes the store choice of
 * this root. An embedded store without instances is set aside. An interrupted call can be repeated.
 * @param keyFile of another node; needed to join
 * @throws AppError USAGE, HOST_PREREQUISITE, STORE_KEY, CONFLICT, NOT_ROOT, FILE_UNREADABLE
 */
export async function initStore(
  context: Context,
  name: string | undefined,
  url: string,
  keyFile: string | undefined,
): Promise<void> {
  const { paths } = context;
  if (name !== undefined && !instanceName.safeParse(name).success)
    throw new AppError('USAGE', `'${name}' is not a valid name for a cluster`, {
      hint: 'Write a host name, such as cluster.example.com',
    });
  await using closing = new AsyncDisposableStack();
  const isChosen = (await readStoreChoice(paths)) !== undefined;
  const embedded = isChosen ? undefined : closing.use(await claimReplaceableStore(context));
  const given = keyFile === undefined ? undefined : await requireKey(keyFile);
  const kept = await readClusterKey(paths.clusterKeyFile);
  const key = given ?? kept ?? makeClusterKey();
  const ring = ringOf(key);
  const hasKey = given !== undefined || kept !== undefined;
  const { store, cluster } = await openSealedRedis(url, () => ring, silentLogger).catch(
    (error: unknown) => {
      throw hasKey || !isAppError(error, 'STORE_KEY') ? error : needsKey(url, error);
    },
  );
  closing.defer(() => store.close());
  refuseOther(cluster, { name, url, isJoining: given !== undefined });
  if (cluster === undefined) await refuseForgetful(store, url);
  await keepKey(paths, key, cluster?.uuid);
  const { name: clusterName, uuid } =
    cluster ?? (await ensureCluster(store, context.clock.now(), name));
  if ((await readStoreChoice(paths))?.cluster !== uuid)
    await writeStoreChoice(paths, { url, cluster: uuid, replaces: embedded?.replaces });
  await embedded?.finish();
  context.note(
    cluster === undefined
      ? `cluster ${clusterName} created in ${describeStoreUrl(url)}\n` +
          `start gnt-noded; other nodes join with a copy of ${paths.clusterKeyFile}: gnt-cluster init --store URL --cluster-key FILE`
      : `this node joined cluster ${clusterName} in ${describeStoreUrl(url)}; next step: systemctl start gnt-noded`,
  );
}

/** Refuses if the store's content does not match the request. */
function refuseOther(
  cluster: ClusterRecord | undefined,
  { name, url, isJoining }: { name: string | undefined; url: string; isJoining: boolean },
): void {
  if (cluster === undefined && isJoining) {
    throw new AppError('CONFLICT', `${describeStoreUrl(url)} contains no cluster to join`, {
      hint: 'Correct --store, or omit --cluster-key to create a cluster',
    });
  }
  if (cluster !== undefined && name !== undefined && name !== cluster.name) {
    throw new AppError(
      'CONFLICT',
      `${describeStoreUrl(url)} contains cluster ${cluster.name}, not ${name}`,
      {
        hint: 'Omit the name to join it, or use another database for another cluster',
      },
    );
  }
}

function needsKey(url: string, cause: unknown): AppError {
  return new AppError(
    'STORE_KEY',
    `${describeStoreUrl(url)} already contains a cluster, and joining it requires its key`,
    {
      hint: 'Copy /var/lib/gnt/cluster.key from one of its nodes and give --cluster-key FILE',
      cause,
    },
  );
}

/**
 * Refuses a new cluster in a store that evicts records when it is full. A store whose settings
 * cannot be read is accepted; noded and the doctor warn of it.
 */
async function refuseForgetful(store: Store, url: string): Promise<void> {
  const risks = (await store.risks?.().catch(() => undefined)) ?? [];
  const [risk] = risks.filter(({ level }) => level === 'error');
  if (risk === undefined) return;
  throw new AppError(
    'HOST_PREREQUISITE',
    `${describeStoreUrl(url)} is not safe for a cluster: ${risk.message}`,
    { hint: risk.hint },
  );
}

async function requireKey(path: string): Promise<Uint8Array> {
  const key = await readClusterKey(path);
  if (key !== undefined) return key;
  throw new AppError('FILE_UNREADABLE', `--cluster-key: ${path} does not exist`, {
    hint: 'Copy /var/lib/gnt/cluster.key from another node of the cluster',
  });
}

/**
 * Writes the cluster key of this root.
 * @param cluster the cluster of the key's records. A node of that cluster may have missed a
 * renewal; it replaces its key
 * @param options `before`: called when no conflict is left, before the write
 */
export async function keepKey(
  paths: RootPaths,
  key: Uint8Array,
  cluster: string | undefined,
  { before = () => Promise.resolve() }: { readonly before?: () => Promise<void> } = {},
): Promise<void> {
  const kept = await readClusterKey(paths.clusterKeyFile);
  if (kept === undefined) {
    await before();
    await writeClusterKey(paths, key);
    return;
  }
  if (Buffer.from(kept).equals(key)) {
    await before();
    return;
  }
  const choice = await readStoreChoice(paths);
  if (cluster !== undefined && choice?.cluster === cluster) {
    await before();
    const keys = await loadClusterKeys(paths);
    await keys.sealWith(key);
    await keys.forgetOthers(fingerprintOf(key));
    return;
  }
  throw new AppError('CONFLICT', `${paths.clusterKeyFile} is the key of another cluster`, {
    hint: 'Move the file away if no cluster needs it',
  });
}
