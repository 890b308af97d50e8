import { type ApplianceUsers, applianceUsers } from '#shared/contract/appliance-choice.ts';
import { apiError, clusterInfo, jobSubmitted } from '#shared/contract/api.ts';
import { BUILT_APPLIANCE } from '#shared/contract/appliance-manifest.ts';
import { jobEvent } from '#shared/contract/job.ts';
import { AppError, isAppError } from '#shared/errors/app-error.ts';
import { isErrorCode } from '#shared/errors/codes.ts';
import { parseJson } from '#shared/json/parse-json.ts';
import { requestOverSocket } from '#shared/socket/http-request.ts';
import { collect } from '#shared/stream/collect.ts';
import { MIB } from '#shared/units/bytes.ts';

const MAX_ANSWER_BYTES = MIB;

export function createChosenAppliance(nodedSocket: string) {
  const ask = async (path: string, body?: object): Promise<string> => {
    const sent = body && Buffer.from(JSON.stringify(body));
    const answer = await requestOverSocket({
      on: nodedSocket,
      method: sent === undefined ? 'GET' : 'POST',
      path,
      body: sent,
      headers: { 'content-type': 'application/json' },
    }).catch((error: unknown) => {
      throw new AppError(
        'NODED_UNREACHABLE',
        `cannot connect to the node daemon at ${nodedSocket}`,
        {
          hint: 'Start it: gnt-noded',
          cause: error,
        },
      );
    });
    const text = (await collect(answer, MAX_ANSWER_BYTES)).toString('utf8');
    if ((answer.statusCode ?? 500) < 400) return text;
    const failure = apiError.safeParse(parseJson(text)).data;
    throw failed(failure?.code, failure?.message ?? text, failure?.hint);
  };
  return {
    /** Returns null when the daemon does not run. */
    async read(): Promise<string | null> {
      try {
        const { appliance } = clusterInfo.parse(parseJson(await ask('/v1/cluster')));
        return appliance ?? BUILT_APPLIANCE;
      } catch (error) {
        if (isAppError(error, 'NODED_UNREACHABLE')) return null;
        throw error;
      }
    },
    /** @throws AppError NODED_UNREACHABLE */
    async users(name: string): Promise<ApplianceUsers> {
      return applianceUsers.parse(parseJson(await ask(`/v1/appliances/${name}/users`)));
    },
    /** @throws AppError of the job that changes the cluster's record */
    async choose(name: string): Promise<void> {
      const appliance = name === BUILT_APPLIANCE ? null : name;
      const opcode = { opcode: 'CLUSTER_SET_PARAMS', appliance };
      const { id } = jobSubmitted.parse(parseJson(await ask('/v1/jobs', opcode)));
      const events = (await ask(`/v1/jobs/${id}/events`)).trim().split('\n');
      const last = jobEvent.parse(parseJson(events.at(-1) ?? ''));
      if (last.type !== 'end') throw new Error(`job ${id} ended without a result`);
      const { error } = last.job;
      if (error !== null) throw failed(error.code, error.message, error.hint);
    },
  };
}

function failed(code = '', message: string, hint: string | null | undefined): AppError {
  return new AppError(isErrorCode(code) ? code : 'INTERNAL', message, {
    ...(hint != null && { hint }),
  });
}
