import type { OsDefinition, OsScriptName } from './os-definition.ts';

/**
 * Returns the definition without host scripts. Its top-level scripts run in the appliance instead,
 * except where an untrusted script of the same name exists. Pure.
 */
export function confineDefinition(definition: OsDefinition): OsDefinition {
  // The type of hostScripts allows no other keys.
  const names = Object.keys(definition.hostScripts) as OsScriptName[];
  // The path of a top-level script within the definition is its name.
  const topLevel = Object.fromEntries(names.map((name) => [name, name]));
  return {
    ...definition,
    hostScripts: {},
    applianceScripts: { ...topLevel, ...definition.applianceScripts },
  };
}
