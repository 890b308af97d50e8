import type { DoctorFinding, DoctorReport } from '#shared/contract/api.ts';
import type { Context } from '../../terminal/context.ts';
import { sanitizeLine } from '../../render/sanitize.ts';
import { type Appearance, createPaint } from '../../terminal/terminal.ts';

/**
 * Prints obstacles of installations with remedies. Sets exit status 1 if installations cannot work.
 */
export async function runDoctor(
  context: Context,
  options: { readonly json?: boolean },
): Promise<void> {
  const client = await context.client();
  const report = await client.ask('GET /v1/doctor');
  if (options.json) context.print(JSON.stringify(report, null, 2));
  else for (const line of renderFindings(report, context.terminal.output)) context.print(line);
  if (!report.ok) context.setExitStatus(1);
}

const STYLES = { ok: 'green', warning: 'yellow', error: 'red' } as const;
const LEVEL_COLUMNS = 'warning'.length;

/** Returns one line for each finding, its hint below it, and a verdict at the end. */
export function renderFindings(report: DoctorReport, appearance: Appearance): readonly string[] {
  const paint = createPaint(appearance);
  const lines = report.findings.flatMap((finding) => renderFinding(finding, paint));
  const count = (level: DoctorFinding['level']): number =>
    report.findings.filter((finding) => finding.level === level).length;
  const verdict = report.ok
    ? 'this node can install instances'
    : 'this node cannot install instances';
  return [...lines, `${verdict}: ${count('error')} error(s), ${count('warning')} warning(s)`];
}

/** Returns the line of a finding, and its hint below it. */
export function renderFinding(
  finding: DoctorFinding,
  paint: ReturnType<typeof createPaint>,
): readonly string[] {
  const { level, check, message, hint } = finding;
  const label = paint(STYLES[level], level.padEnd(LEVEL_COLUMNS));
  const lines = [`${label} ${sanitizeLine(check)}: ${sanitizeLine(message)}`];
  return hint === null
    ? lines
    : [...lines, `${' '.repeat(LEVEL_COLUMNS)} hint: ${sanitizeLine(hint)}`];
}
