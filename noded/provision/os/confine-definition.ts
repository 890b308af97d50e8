import type { OsDefinition, OsScriptName } from './os-definition.ts';

/**
 * A definition of which nothing runs on the host: scripts at its top run in the appliance, with
 * their environment, but for those that have one for the appliance beside them. Pure.
 */
export function confineDefinition(definition: OsDefinition): OsDefinition {
  // Its type allows no other keys.
  const names = Object.keys(definition.hostScripts) as OsScriptName[];
  // At the top of a definition a script is called by its own name.
  const topLevel = Object.fromEntries(names.map((name) => [name, name]));
  return {
    ...definition,
    hostScripts: {},
    applianceScripts: { ...topLevel, ...definition.applianceScripts },
  };
}
