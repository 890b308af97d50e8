/**
 * Functions of dr-provision and sprig that are known and not there. Two renderings of the same
 * parameters are the same, so none asks for a clock, for chance, for the network or for what is
 * around the daemon; keys and passwords are made where they are kept.
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

/** Lists the refused functions by the reason. */
export function listRefusedFunctions(): readonly {
  readonly reason: string;
  readonly names: readonly string[];
}[] {
  return Object.entries(refused).map(([kind, names]) => ({
    // The keys of the one are those of the other.
    reason: reasons[kind as keyof typeof reasons],
    names,
  }));
}

const byName: ReadonlyMap<string, string> = new Map(
  Object.entries(refused).flatMap(([kind, names]) =>
    // The keys of the one are those of the other.
    names.map((name) => [name, reasons[kind as keyof typeof reasons]] as const),
  ),
);

/** Why a function is refused, or null when it is not known at all. */
export function refusalOf(name: string): string | null {
  const reason = byName.get(name);
  return reason === undefined ? null : `the function '${name}' is refused: ${reason}`;
}
