import type { z } from 'zod';
import type { awsSettings, googleSettings } from './cloud-credentials.ts';
import type { KeyTable } from './parameter-keys.ts';

/** Keys of `--identity-aws`. */
export const awsKeys: KeyTable<
  Exclude<keyof z.input<typeof awsSettings>, 'roles'> | 'role:PROFILE'
> = {
  sts: {
    value: 'URL',
    default: null,
    effective: 'at once',
    help: 'Server that takes AssumeRoleWithWebIdentity; https.',
  },
  role: {
    value: 'ARN',
    default: null,
    effective: 'at once',
    help: 'Role of instances without another role.',
  },
  'role:PROFILE': {
    value: 'ARN',
    default: null,
    effective: 'at once',
    help: 'Role of instances with this profile. The first profile with a role counts.',
  },
  audience: {
    value: 'AUDIENCE',
    default: 'sts.amazonaws.com',
    effective: 'at once',
    help: 'Audience of the tokens for this server.',
  },
  region: {
    value: 'REGION',
    default: 'the cluster name',
    effective: 'at once',
    help: 'Region that the EC2 tree shows.',
  },
};

/** Keys of `--identity-google`. */
export const googleKeys: KeyTable<
  Exclude<keyof z.input<typeof googleSettings>, 'accounts'> | 'account:PROFILE'
> = {
  provider: {
    value: 'NAME',
    default: null,
    effective: 'at once',
    help: 'Workload identity provider: //iam.googleapis.com/projects/…/providers/NAME.',
  },
  account: {
    value: 'EMAIL',
    default: 'the federated identity',
    effective: 'at once',
    help: 'Service account of instances without another account.',
  },
  'account:PROFILE': {
    value: 'EMAIL',
    default: null,
    effective: 'at once',
    help: 'Service account of instances with this profile. The first profile with an account counts.',
  },
  sts: {
    value: 'URL',
    default: 'https://sts.googleapis.com/v1/token',
    effective: 'at once',
    help: 'Server for the exchange of tokens (RFC 8693); https.',
  },
  iam: {
    value: 'URL',
    default: 'https://iamcredentials.googleapis.com',
    effective: 'at once',
    help: 'Server for tokens of service accounts; https.',
  },
};
