import type { OpcodeOf } from '#shared/contract/opcode.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { JobHandler } from '../jobs/job-handler.ts';
import type { Presence } from '../cluster/peers/ask-peer.ts';
import { noNode } from '../records/node-registry.ts';
import type { OperationDependencies } from './operation-dependencies.ts';

/** Sets the flags of a node, whether or not that node answers. */
export function modifyNodeHandler({
  membership,
  nodes,
  nodeName,
  presenceOf,
}: OperationDependencies): JobHandler<OpcodeOf<'NODE_SET_PARAMS'>> {
  return {
    prepare: async ({ name, drained, offline }) => {
      membership.requireMember();
      const names = await nodes.names();
      if (!names.includes(name)) throw noNode(name, names);
      if (offline === true && name === nodeName) {
        throw new AppError(
          'CONFLICT',
          `node '${name}' answers this command and is therefore not offline`,
          {
            details: { node: name },
            hint: 'Run the command on another node. To keep new instances away: --drained yes',
          },
        );
      }
      return async (context) => {
        // An unknown presence must not fail the job: it only decides on a warning.
        const ask = (): Promise<Presence> => presenceOf(name).catch(() => 'gone');
        if (offline === true && (await ask()) !== 'gone') {
          context.report.log(
            `gnt-noded still runs on node ${name}: its instances keep running, but other nodes ignore it and its jobs are refused. Stop gnt-noded there, or clear the flag with --offline no`,
            'warn',
          );
        }
        const flags = await nodes.changeFlags(name, { drained, offline });
        const said = (['drained', 'offline'] as const).filter((flag) => flags[flag]);
        context.report.log(
          `node ${name} is ${said.length === 0 ? 'neither drained nor offline' : said.join(', ')}`,
        );
        return { name, ...flags };
      };
    },
  };
}
