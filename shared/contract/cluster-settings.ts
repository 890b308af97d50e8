import { z } from 'zod';
import { socketPath } from './primitives.ts';

/** A pebibyte. */
export const MAX_IMAGE_BYTES = 2 ** 50;
/** A timer's longest time is little more than three weeks. */
export const MAX_DOWNLOAD_TIMEOUT_S = 14 * 24 * 3600;
/** What a gigabit network carries: above it, every server would be too slow. */
export const MAX_MIN_DOWNLOAD_RATE = 125_000_000;

/** What has to be free of a file system lest jobs and the doctor warn of it. */
export const DEFAULT_LOW_SPACE_PERCENT = 10;
/** 0: nobody is warned. */
export const lowSpacePercent = z.number().int().min(0).max(90);

/** What `launch` takes where neither the command nor the user's file says anything else. */
export const launchDefaults = z.strictObject({
  diskBytes: z.number().int().positive().optional(),
  memoryMiB: z.number().int().min(16).max(16_777_216).optional(),
  vcpus: z.number().int().min(1).max(255).optional(),
  /** What stands behind `--net 0:`, or none. */
  net: z.string().min(1).max(1000).optional(),
});

/** Characters of PEM certificates: a few dozen of them. */
export const MAX_IMAGE_CA_LENGTH = 131_072;

export const MAX_REMOTE_FOLDERS = 32;
export const remoteFolder = z
  .string()
  .max(4096)
  .regex(/^(\/(?!\.{1,2}(\/|$))[^/\0]+)+$/, 'expected an absolute path without . and .., not /');

export const MAX_REMOTE_HOSTS = 64;
/** A name, an address, or a network. */
export const remoteHost = z.union(
  [
    z.ipv4(),
    z.ipv6(),
    z.cidrv4(),
    z.cidrv6(),
    z
      .string()
      .max(253)
      .regex(/^(?!.*\.\d+$)[\w.-]+$/),
  ],
  'expected a host name, an address or a network such as 10.1.0.0/16',
);

/** Absent: TCP. */
export const serviceProtocol = z.literal('udp');

/** By name; null takes a service back. A unix socket takes connections only. */
export const exposedServiceChanges = z.record(
  z.string().regex(/^[a-z][a-z0-9-]{0,31}$/),
  z
    .union([
      z.strictObject({
        port: z.number().int().min(1).max(65535),
        host: z.string().min(1).max(253),
        hostPort: z.number().int().min(1).max(65535),
        protocol: serviceProtocol.optional(),
      }),
      z.strictObject({
        port: z.number().int().min(1).max(65535),
        socketPath,
        protocol: serviceProtocol.optional(),
      }),
    ])
    .nullable(),
);
