import type { RunLists } from './lifecycle.ts';
import type { Opcode, OpcodeOf } from './opcode.ts';
import { REDACTED } from './redacted.ts';
import { redactMedium, redactSource } from './redact-source.ts';

/**
 * Returns an opcode for the store and for display, with private values, secrets, credentials and
 * documents replaced.
 */
export function redactOpcode(full: Opcode): Record<string, unknown> {
  const shown: Record<string, unknown> = { ...full };
  for (const key of ['osParametersPrivate', 'osParametersSecret'] as const) {
    if (key in full) {
      // Both are tables of parameters in every opcode that has them.
      const names = Object.keys((full as Record<string, unknown>)[key] as object);
      shown[key] = Object.fromEntries(names.map((name) => [name, REDACTED]));
    }
  }
  for (const key of [
    'personalizationUser',
    'personalizationPassword',
    'userData',
    'vendorData',
    'networkConfig',
  ] as const) {
    if (shown[key] !== undefined && shown[key] !== null) shown[key] = REDACTED;
  }
  if ('hooks' in full && full.hooks !== undefined)
    shown['hooks'] = full.hooks.map(({ name }) => ({ name, content: REDACTED }));
  if ('runLists' in full && full.runLists != null)
    shown['runLists'] = redactRunLists(full.runLists);
  if ('inputs' in full)
    shown['inputs'] = Object.fromEntries(Object.keys(full.inputs).map((name) => [name, REDACTED]));
  if ('bootEnvs' in full) Object.assign(shown, nameBootContent(full));
  for (const key of ['osImage', 'personalizationPackage', 'source'] as const) {
    if (typeof shown[key] === 'string') shown[key] = redactSource(shown[key]);
  }
  if ('installParameters' in full && full.installParameters != null)
    shown['installParameters'] = redactMedium(full.installParameters);
  return shown;
}

/** Returns names only. Templates and values may contain private data and are large. */
function nameBootContent(given: OpcodeOf<'BOOTENV_SET'>): Record<string, unknown> {
  return {
    bootEnvs: given.bootEnvs.map(({ Name }) => Name),
    templates: given.templates.map(({ ID }) => ID),
    params: given.params.map(({ Name }) => Name),
    profiles: given.profiles.map(({ name }) => name),
  };
}

/** Returns names only. Scripts and texts of inputs may contain private data. */
function redactRunLists(lists: RunLists): Record<string, unknown> {
  const named = ({ name }: { readonly name: string }): object => ({ name, content: REDACTED });
  return {
    boot: lists.boot.map(named),
    operational: lists.operational.map(named),
    decommission: lists.decommission.map(named),
    attachments: lists.attachments.map(named),
    inputs: Object.fromEntries(Object.keys(lists.inputs).map((name) => [name, REDACTED])),
  };
}
