import type { DoctorFinding, NodeReport } from '#shared/contract/api.ts';
import type { InstanceInfo } from '#shared/contract/instance.ts';
import { sanitizeLine } from '../../render/sanitize.ts';
import type { Context } from '../../terminal/context.ts';
import { createPaint } from '../../terminal/terminal.ts';
import { renderFinding } from '../node/doctor.ts';

export interface VerifyOptions {
  readonly json?: boolean;
  readonly errorCodes?: boolean;
}

/** A finding and its object. */
interface Located extends DoctorFinding {
  readonly kind: 'node' | 'instance';
  readonly name: string;
}

const WRONG = new Set<InstanceInfo['status']>([
  'paused',
  'ERROR_down',
  'ERROR_up',
  'install_failed',
  'ERROR_nodedown',
  'ERROR_nodefails',
  'ERROR_nodeoffline',
]);

/**
 * Prints the problems of all nodes and instances. Sets exit status 1 if one of them is an error.
 */
export async function runClusterVerify(context: Context, options: VerifyOptions): Promise<void> {
  const client = await context.client();
  const [cluster, reports, instances] = await Promise.all([
    client.ask('GET /v1/cluster'),
    client.ask('GET /v1/doctor-of-nodes'),
    client.instances(),
  ]);
  const findings = [
    ...reports.flatMap(findingsOfNode),
    ...instances.filter(({ status }) => WRONG.has(status)).map(findingOfInstance),
  ];
  const count = (level: DoctorFinding['level']): number =>
    findings.filter((finding) => finding.level === level).length;
  const isOk = count('error') === 0;
  if (options.json)
    context.print(JSON.stringify({ cluster: cluster.name, ok: isOk, findings }, null, 2));
  else if (options.errorCodes)
    for (const finding of findings.filter(({ level }) => level !== 'ok'))
      context.print(renderCoded(finding));
  else {
    context.print(
      `cluster ${cluster.name}: ${reports.length} node(s), ${instances.length} instance(s)`,
    );
    const paint = createPaint(context.terminal.output);
    for (const { kind, name, check, ...finding } of summarize(findings))
      for (const line of renderFinding({ ...finding, check: `${kind} ${name}: ${check}` }, paint))
        context.print(line);
    context.print(`${count('error')} error(s), ${count('warning')} warning(s)`);
  }
  if (!isOk) context.setExitStatus(1);
}

function findingsOfNode(of: NodeReport): readonly Located[] {
  const { node: name } = of;
  if ('report' in of)
    return of.report.findings.map((finding) => ({ kind: 'node', name, ...finding }));
  const silent = { kind: 'node', name, check: 'reachable', message: of.silent } as const;
  if (of.isOffline) return [{ ...silent, level: 'warning', hint: null }];
  const hint = `Start gnt-noded there; if the node will not come back: gnt-node remove ${name}`;
  return [{ ...silent, level: 'error', hint }];
}

function findingOfInstance({ name, status, explanation }: InstanceInfo): Located {
  return {
    kind: 'instance',
    name,
    check: 'status',
    level: 'error',
    message: `${status}: ${explanation}`,
    hint: `gnt-instance info ${name}`,
  };
}

/** Replaces the passed checks of a node with one finding. */
function summarize(findings: readonly Located[]): readonly Located[] {
  const passed = Map.groupBy(
    findings.filter(({ level }) => level === 'ok'),
    ({ name }) => name,
  );
  return findings.flatMap((finding) => {
    if (finding.level !== 'ok') return [finding];
    const all = passed.get(finding.name) ?? [];
    if (all[0] !== finding) return [];
    return [{ ...finding, check: 'doctor', message: `${all.length} check(s) passed`, hint: null }];
  });
}

/** Returns a line in the format of Ganeti's `--error-codes`. */
function renderCoded({ level, check, kind, name, message }: Located): string {
  return [level.toUpperCase(), check, kind, name, message].map(sanitizeLine).join(':');
}
