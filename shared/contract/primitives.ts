import { z } from 'zod';
import { IMAGE_FORMATS } from './image-formats.ts';
import { plainSettings } from './parameter-keys.ts';

/** RFC 1123 host name in lower case. */
const hostName = (what: string, example: string) =>
  z
    .string()
    .max(253)
    .regex(
      /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/,
      { error: `not a valid ${what} name: use a lower-case host name such as ${example}` },
    );
/** It becomes the guest's host name and part of file names. */
export const instanceName = hostName('instance', 'web1.example.com');
/**
 * Name of a new or renamed instance. Programs parse digits with dots as an address before they
 * resolve a name (inet_aton(3)). Older instances keep such names.
 */
export const newInstanceName = instanceName.regex(/^(?!\d+(?:\.\d+){1,3}$)/, {
  error: 'an IP address is not a host name: use a name such as web1.example.com',
});
export const nodeName = hostName('node', 'node1.example.com');
/**
 * A new tag: Ganeti's rule, plus `=` for RightLink's tags. Older tags may differ and can only be
 * removed.
 */
export const newTag = z
  .string()
  .min(1)
  .max(128)
  .regex(/^[\w.+*/:@=-]+$/, {
    error: 'not a tag: use letters, digits and .+*/:@_-=, without spaces',
  });

export const uuid = z
  .string()
  .regex(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/, 'not a lower-case UUID');
/** Tokens travel in headers, which many servers limit to 8 KiB. */
const MAX_AUDIENCE_LENGTH = 1024;
/** Recipient of a token. Control characters and spaces would confuse logs and lists. */
export const audience = z
  .string()
  .min(1)
  .max(MAX_AUDIENCE_LENGTH, `longer than ${MAX_AUDIENCE_LENGTH} characters`)
  .regex(/^[\x21-\x7e]+$/, 'not an audience: use printable ASCII without spaces');
export const macAddress = z
  .string()
  .regex(/^([0-9a-f]{2}:){5}[0-9a-f]{2}$/, 'not a lower-case MAC address');

/**
 * A guest's address in 169.254.0.0/16, except for the metadata service's, the network's and the
 * broadcast address.
 */
export const channelIp = z.ipv4().refine((ip) => {
  const parts = ip.split('.').map(Number);
  const rest = `${parts[2]}.${parts[3]}`;
  return parts[0] === 169 && parts[1] === 254 && !['169.254', '0.0', '255.255'].includes(rest);
}, 'not a usable address in 169.254.0.0/16');
/** Linux interface name. */
export const deviceName = z.string().regex(/^[A-Za-z0-9_.-]{1,15}$/, 'not an interface name');

/** Ganeti's characters for parameter names, which become OSP_<NAME>. */
/** Ganeti's characters, and single slashes inside for dr-provision's names. */
export const osParameterName = z
  .string()
  .max(128)
  .regex(/^[A-Za-z0-9_][A-Za-z0-9_.-]*(?:\/[A-Za-z0-9_][A-Za-z0-9_.-]*)*$/, 'not a parameter name');
/** File name of one path segment, without a leading dot. */
export const fileName = z
  .string()
  .regex(/^[A-Za-z0-9_+][A-Za-z0-9_.+-]{0,127}$/, 'not a file name');
/** An operator's name of a snapshot. */
export const snapshotName = z
  .string()
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/,
    'not a snapshot name: use at most 64 letters, digits, dots, dashes and underscores',
  );
export const sha256Hex = z.string().regex(/^[0-9a-f]{64}$/, 'not a SHA-256 in hex');
export const base64 = z.base64();
/** Maximum of a Date, which can be written as text. */
const MAX_TIMESTAMP_MS = 8.64e15;
export const timestampMs = z.number().nonnegative().max(MAX_TIMESTAMP_MS);

/**
 * An operator's name for a package mirror: a path segment, and GNT_MIRROR_<NAME> in an environment.
 */
export const mirrorName = z.string().regex(/^[a-z][a-z0-9-]{0,31}$/, 'not a mirror name');
export const MAX_MIRRORS = 16;
/**
 * The allowed folder of a package mirror. Appliances read the URL, so it must not contain a login.
 */
export const mirrorUrl = z
  .string()
  .max(1024)
  .refine((text) => /^https?:\/\/[^/\s@?#\\][^\s@?#\\]*$/i.test(text) && URL.canParse(text), {
    error: 'not an http or https URL without user, query and fragment',
  });

export const imageFormat = z.enum(IMAGE_FORMATS);

export const visibility = z.enum(['public', 'private', 'secret']);
export type Visibility = z.infer<typeof visibility>;

export const dialect = z.enum(plainSettings.dialects.type.list);
export type Dialect = z.infer<typeof dialect>;
export const DEFAULT_DIALECTS: readonly Dialect[] = plainSettings.dialects.default;

/** Longest path of a unix socket (sun_path without its NUL). */
const MAX_SOCKET_PATH_BYTES = 107;
/** Path of a unix socket on the host: absolute and normalized. */
export const socketPath = z
  .string()
  .refine(
    (path) => Buffer.byteLength(path) <= MAX_SOCKET_PATH_BYTES,
    `longer than ${MAX_SOCKET_PATH_BYTES} bytes`,
  )
  .refine(
    (path) =>
      path.startsWith('/') &&
      !path.includes('\0') &&
      path
        .slice(1)
        .split('/')
        .every((part) => part !== '' && part !== '.' && part !== '..'),
    'not an absolute path without . and ..',
  );

/**
 * Success of an installation from a medium: the medium's report at install/events, or poweroff or
 * reboot of the guest.
 */
export type MediumSuccess = (typeof plainSettings.mediumSuccess.type.words)[number];

export const tokenPolicy = z.enum(plainSettings.metadataToken.type.words);

/** Stages of hooks in their order. `*-reset*` only occur in reinstallations. */
export const hookPoint = z.enum([
  'install.pre',
  'before-install',
  'before-reset',
  'image',
  'os-scripts',
  'after-install-chroot',
  'after-reset-chroot',
  'personalize',
  'after-install',
  'after-reset',
  'install.post',
]);
export type HookPoint = z.infer<typeof hookPoint>;
/** A stage of hooks, or the point right before or after it. */
export type HookStage = `${HookPoint}${'' | '.before' | '.after'}`;
export const hookStages: readonly HookStage[] = hookPoint.options.flatMap((point): HookStage[] => [
  `${point}.before`,
  point,
  `${point}.after`,
]);

const ownAgentStages = [
  'hooks',
  'wait-disks',
  'verify',
  'image',
  'grow',
  'mount',
  'os-scripts',
  'personalize',
  'unmount',
  'sync',
] as const;
const hostStages = [
  'fetch-image',
  'check-package',
  'create-disks',
  'medium',
  'prepare-appliance',
  'boot-appliance',
  'shutdown-appliance',
] as const;
/** Stages of an installation. Host stages and agent stages share one list. */
export const installStage = z.enum([...new Set([...hostStages, ...ownAgentStages, ...hookStages])]);
export type InstallStage = z.infer<typeof installStage>;
/** Stages in the appliance. Guests must not report the others. */
export const agentStages: ReadonlySet<InstallStage> = new Set([...ownAgentStages, ...hookStages]);
