/**
 * Known functions of dr-provision and sprig that are refused. Two renderings of the same parameters
 * must be equal, so that no function reads a clock, randomness, the network or the host. Keys and
 * passwords are created where they are stored.
 */
const reasons = {
  clock: 'templates have no clock',
  chance: 'templates have no random numbers',
  keys: 'templates cannot create keys or passwords',
  outside: 'templates have no access to the host',
  absent: 'it is not supported in templates',
} as const;

const refused: Readonly<Record<keyof typeof reasons, readonly string[]>> = {
  clock: [
    ...['ago', 'date', 'dateInZone', 'dateModify', 'date_in_zone', 'date_modify', 'duration'],
    ...['durationRound', 'htmlDate', 'htmlDateInZone', 'mustDateModify', 'mustToDate'],
    ...['must_date_modify', 'now', 'toDate', 'unixEpoch'],
  ],
  chance: [
    ...['randAlpha', 'randAlphaNum', 'randAscii', 'randBytes', 'randInt', 'randNumeric'],
    ...['shuffle', 'uuidv4'],
  ],
  keys: [
    ...['bcrypt', 'buildCustomCert', 'decryptAES', 'derivePassword', 'encryptAES', 'genCA'],
    ...['genCAWithKey', 'genPrivateKey', 'genSelfSignedCert', 'genSelfSignedCertWithKey'],
    ...['genSignedCert', 'genSignedCertWithKey', 'htpasswd'],
  ],
  outside: ['env', 'expandenv', 'getHostByName', 'osBase', 'osClean', 'osDir', 'osExt', 'osIsAbs'],
  absent: ['call', 'hello', 'semver', 'semverCompare', 'urlJoin', 'urlParse'],
};

export function listRefusedFunctions(): readonly {
  readonly reason: string;
  readonly names: readonly string[];
}[] {
  return Object.entries(refused).map(([kind, names]) => ({
    // Both tables have the same keys.
    reason: reasons[kind as keyof typeof reasons],
    names,
  }));
}

const byName: ReadonlyMap<string, string> = new Map(
  Object.entries(refused).flatMap(([kind, names]) =>
    // Both tables have the same keys.
    names.map((name) => [name, reasons[kind as keyof typeof reasons]] as const),
  ),
);

export function refusalOf(name: string): string | null {
  const reason = byName.get(name);
  return reason === undefined ? null : `the function '${name}' is refused: ${reason}`;
}
