import { z } from 'zod';
import { MIB } from '../units/bytes.ts';
import { socketPath } from './primitives.ts';

/** 1 PiB. */
export const MAX_IMAGE_BYTES = 2 ** 50;
/** Below the maximum of a timer, 2^31 ms, about 24 days. */
export const MAX_DOWNLOAD_TIMEOUT_S = 14 * 24 * 3600;
/** Bytes per second of gigabit Ethernet. A higher limit would refuse every server. */
export const MAX_MIN_DOWNLOAD_RATE = 125_000_000;

/** Bytes per second that a move or migration sends at most; 0: no limit. */
export const dataRate = z.union(
  [z.literal(0), z.number().int().min(MIB).max(MAX_IMAGE_BYTES)],
  'expected 0 or at least 1 MiB per second',
);

/** Jobs and the doctor warn below this share of free space. */
export const DEFAULT_LOW_SPACE_PERCENT = 10;
/** 0: no warning. */
export const lowSpacePercent = z.number().int().min(0).max(90);

/** Defaults of `launch`, after the command line and the user's file. */
export const launchDefaults = z.strictObject({
  diskBytes: z.number().int().positive().optional(),
  memoryMiB: z.number().int().min(16).max(16_777_216).optional(),
  vcpus: z.number().int().min(1).max(255).optional(),
  /** A value of `--net 0:`, or none. */
  net: z.string().min(1).max(1000).optional(),
});

/** Characters of PEM: a few dozen certificates. */
export const MAX_IMAGE_CA_LENGTH = 131_072;

export const MAX_REMOTE_FOLDERS = 32;
export const remoteFolder = z
  .string()
  .max(4096)
  .regex(/^(\/(?!\.{1,2}(\/|$))[^/\0]+)+$/, 'expected an absolute path without . and .., not /');

export const MAX_REMOTE_HOSTS = 64;
/** A name, an address or a network. */
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

/** Changes by name; null removes a service. A unix socket accepts connections only. */
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
