import { systemClock } from '#shared/clock/clock.ts';
import { silentLogger } from '#shared/log/log.ts';
import { createRepositoryTree } from '../../../noded/content/downloads/boot-tree.ts';
import { startContentServer } from '../../../noded/net/metad-link/content-server.ts';
import { METAD_UID } from './channel-lab.ts';

/** The node daemon's content socket in its own process, which a test can kill. */
const [socketPath = '', repository = ''] = process.argv.slice(2);
await startContentServer({
  ...{ socketPath, gid: METAD_UID, logger: silentLogger, clock: systemClock },
  content: {
    openImage: async () => undefined,
    openRelay: async () => ({ kind: 'refusal', status: 404, reason: 'no relay' }),
    openPackage: async () => undefined,
    openMirror: async () => undefined,
    issueToken: async () => ({ kind: 'refused', status: 403, reason: 'no identity' }),
    findService: async () => undefined,
    findBootTree: async () => createRepositoryTree(repository),
  },
});
process.stdout.write('ready\n');
