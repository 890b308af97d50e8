import { writeFile } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { jobRecord, type JobRecord } from '#shared/contract/job.ts';
import type { Lab } from '../../../scripts/demo/lab.ts';
import { askSocket } from '../../lab/ask-socket.ts';
import { addOs, succeed } from './ask-nodes.ts';

/** Installations that wait for a file each, and operations of each kind that need no guest. */
export interface GatedJobs {
  readonly createOf: (name: string, more?: object) => object;
  /** @returns the job's number; 0 when it was refused */
  readonly submit: (opcode: object) => Promise<{ readonly status: number; readonly id: number }>;
  /** Resolves when its script runs. */
  readonly begin: (name: string) => Promise<number>;
  readonly open: (name: string) => Promise<void>;
  readonly hasBegun: (name: string) => boolean;
  readonly ended: (id: number) => Promise<JobRecord>;
}

const SUBMITTED = z.object({ id: z.number() });

export async function gateJobs(lab: Lab): Promise<GatedJobs> {
  const gate = (name: string): string => join(lab.paths.root, `gate-${name}`);
  await addOs(lab, 'gated', [
    `echo begun >${lab.paths.root}/gate-$INSTANCE_NAME.begun`,
    `while [ ! -e ${lab.paths.root}/gate-$INSTANCE_NAME ]; do sleep 0.05; done`,
  ]);
  await succeed(lab, 'gnt-os', 'trust', 'gated');
  const { nodedSocket } = lab.paths;
  const createOf = (name: string, more: object = {}): object => ({
    opcode: 'INSTANCE_CREATE', name, osType: 'gated', disks: [{ sizeBytes: 16 * 1024 * 1024 }],
    nics: [], start: false, ...more,
  }); // prettier-ignore
  const submit: GatedJobs['submit'] = async (opcode) => {
    const asking = { method: 'POST', body: opcode };
    const { status, body } = await askSocket(nodedSocket, '/v1/jobs', asking);
    return { status, id: SUBMITTED.safeParse(JSON.parse(body)).data?.id ?? 0 };
  };
  return {
    createOf,
    submit,
    begin: async (name) => {
      const { id } = await submit(createOf(name));
      while (!existsSync(`${gate(name)}.begun`)) await sleep(50);
      return id;
    },
    open: (name) => writeFile(gate(name), ''),
    hasBegun: (name) => existsSync(`${gate(name)}.begun`),
    ended: async (id) => {
      for (;;) {
        const { status, body } = await askSocket(nodedSocket, `/v1/jobs/${id}`);
        const job = status === 200 ? jobRecord.parse(JSON.parse(body)) : undefined;
        if (job !== undefined && job.endedAtMs !== null) return job;
        await sleep(100);
      }
    },
  };
}
