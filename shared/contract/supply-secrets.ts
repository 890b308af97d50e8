/** Returns the command that gives secrets to an instance. Pure. */
export function supplySecrets(instance: string, names: readonly string[]): string {
  return `gnt-instance startup --os-parameters-secret ${names.map((name) => `${name}=@FILE`).join(',')} ${instance}`;
}

/** Returns the warning of a job that leaves a guest running without its secrets. Pure. */
export function describeLostSecrets(instance: string, names: readonly string[]): string {
  return `the guest of ${instance} cannot read its secrets ${names.join(', ')}: their values are lost. Supply them: ${supplySecrets(instance, names)}`;
}
