import type { z } from 'zod';

/** User and password after percent-decoding. */
export interface SourceLogin {
  readonly user: string;
  readonly password: string;
}

/** Fields of an opcode that may contain a URL with a login. */
interface NamesSources {
  readonly opcode: string;
  osImage?: string | null | undefined;
  personalizationPackage?: string | null | undefined;
  personalizationUser?: string | undefined;
  personalizationPassword?: string | undefined;
  importFrom?: string | undefined;
  hvparams?: Readonly<Record<string, unknown>> | undefined;
  installParameters?: Readonly<Record<string, unknown>> | undefined;
}

const FILE_PARAMETERS = ['cdrom_image_path', 'kernel_path', 'initrd_path'] as const;
/** Opcodes that accept a package with a login. */
const INSTALLING = ['INSTANCE_CREATE', 'INSTANCE_REINSTALL'];
const PACKAGE_HINT =
  'Give it with --personalization-user and --personalization-password when you install';

/** Returns the login in a URL; undefined: none. @throws URIError on a lone `%` */
export function readLogin(url: URL): SourceLogin | undefined {
  if (url.username === '' && url.password === '') return undefined;
  return {
    user: decodeURIComponent(url.username),
    password: decodeURIComponent(url.password),
  };
}

/**
 * Moves logins out of the URLs of an opcode, so that no stored, logged or shown URL contains one.
 * The login of a package becomes its user and password, which stay in the memory of the running
 * job. Any other login is refused with a hint. For a schema's `check`.
 */
export function takeLoginsApart({ value, issues }: z.core.ParsePayload<NamesSources>): void {
  const refuse = (path: readonly string[], message: string): void => {
    // The input contains the password, so the issue omits it.
    issues.push({ code: 'custom', input: undefined, path: [...path], message });
  };
  if (hasLogin(value.osImage)) {
    refuse(
      ['osImage'],
      "an image URL cannot contain a login: write the login into the netrc file of the node's settings",
    );
  }
  if (hasLogin(value.importFrom)) refuse(['importFrom'], 'expected an export name');
  for (const key of ['hvparams', 'installParameters'] as const) {
    for (const name of FILE_PARAMETERS) {
      if (!hasLogin(value[key]?.[name])) continue;
      refuse(
        [key, name],
        'expected a path on the node, or a URL for a cdrom; neither can contain a login',
      );
    }
  }
  const refusal = takePackageLogin(value);
  if (refusal !== undefined) refuse(['personalizationPackage'], refusal);
}

/** @returns why the login is refused */
function takePackageLogin(value: NamesSources): string | undefined {
  const { personalizationPackage: source } = value;
  if (!hasLogin(source)) return undefined;
  if (!INSTALLING.includes(value.opcode)) return `its login is not stored: ${PACKAGE_HINT}`;
  const url = URL.parse(source);
  if (url === null) return `expected a URL without a login; ${PACKAGE_HINT}`;
  if (value.personalizationUser !== undefined || value.personalizationPassword !== undefined)
    return 'the URL contains a login, and another login is given as well';
  let login: SourceLogin | undefined;
  try {
    login = readLogin(url);
  } catch {
    return `the login is not percent-encoded (write '%' as %25): ${PACKAGE_HINT}`;
  }
  if (login === undefined || login.user === '') return `the login has no user: ${PACKAGE_HINT}`;
  url.username = '';
  url.password = '';
  value.personalizationPackage = url.href;
  value.personalizationUser = login.user;
  if (login.password !== '') value.personalizationPassword = login.password;
  return undefined;
}

/**
 * Tells whether a URL has a login, even if it is malformed. A later check refuses malformed URLs,
 * but the job's record would contain them.
 */
function hasLogin(source: unknown): source is string {
  if (typeof source !== 'string' || source.startsWith('/')) return false;
  const url = URL.parse(source);
  if (url !== null && url.username + url.password !== '') return true;
  // The URL parser finds no login without an authority, as in `http:x:y@z`.
  return (url === null || url.host === '') && source.includes('@') && source.includes(':');
}
