import { systemClock } from '#shared/clock/clock.ts';
import { openIdentityLab } from '../../lab/identity-lab.ts';
import { instanceRecord } from '../../noded/support/records.ts';
import { FairnessLab } from '../../soak/fairness.ts';
import type { Report } from './measurement.ts';

const SIGNING_MS = 3000;
/** Requests at once of four guests, the most that one guest may have being four. */
const AT_ONCE = 16;
const FLOOD_S = 30;

/**
 * Measures how many tokens a node signs, with the store and the audit log, and the latency of a
 * guest whose neighbour floods the service with requests for tokens and credentials.
 */
export async function measureTokenRequests(report: Report): Promise<void> {
  const record = instanceRecord();
  await using signer = await openIdentityLab(systemClock, [record]);
  await signer.configure({ policy: 'yes' });
  for (const alg of ['ES256', 'RS256']) {
    const query = new URLSearchParams({ audience: 'https://vault.example.com', alg });
    const startedAtMs = performance.now();
    let count = 0;
    const issue = async (): Promise<void> => {
      while (performance.now() - startedAtMs < SIGNING_MS) {
        const answer = await signer.identities.issue(record.uuid, query);
        if (answer.kind === 'refused') throw new Error(answer.reason);
        count++;
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, issue));
    const value = count / ((performance.now() - startedAtMs) / 1000);
    report({ name: `identity tokens of a node, ${alg}`, value, unit: '1/s', compared_with: null });
  }
  await using lab = await FairnessLab.create();
  for (const flood of ['identity-tokens', 'credentials']) {
    const { p99, quietP99, failures } = await lab.measure(flood, FLOOD_S);
    if (failures.length > 0) throw new Error(`the neighbour got ${failures[0]}`);
    report({
      name: `p99 of a neighbour during a flood, ${flood}`,
      ...{ value: p99, unit: 'ms' },
      compared_with: { name: 'without a flood', value: quietP99 },
    });
  }
}
