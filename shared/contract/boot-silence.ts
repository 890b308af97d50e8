import type { InstanceRecord } from './instance.ts';

/** Why the settings keep cloud-init from reporting, and a remedy. */
export interface Silence {
  readonly reason: string;
  readonly hint: string;
}

interface Reporter extends Pick<
  InstanceRecord,
  'name' | 'communication' | 'dialects' | 'hvparams' | 'seedDisk' | 'metadataToken'
> {
  /** cloud-init's name of its datasource; null: none. */
  readonly datasource: string | null;
}

/**
 * Returns why an instance's settings keep cloud-init from reporting, or null. The operator's
 * documents may do so too: see `cluster-cli/values/boot-report-obstacles.ts`. Pure.
 */
export function explainSilence(instance: Reporter): Silence | null {
  const { name, communication, dialects, datasource, hvparams, seedDisk, metadataToken } = instance;
  if (!communication) {
    return {
      reason: 'its channel is off in normal runs',
      hint: `gnt-instance modify -C yes ${name} turns the channel on`,
    };
  }
  if (!dialects.includes('ganeti')) {
    return {
      reason: 'the dialect ganeti, which takes the report, is not served',
      hint: 'Add ganeti to --dialects',
    };
  }
  if (hvparams.boot_report === 'no') {
    return {
      reason: 'cloud-init is not asked to report (boot_report=no)',
      hint: `gnt-instance modify -H boot_report=none ${name}`,
    };
  }
  if (metadataToken === 'required' && !seedDisk && datasource !== 'Ec2') {
    return {
      reason: `session tokens are required, and cloud-init with ${datasource ?? 'no datasource'} sends none`,
      hint: 'Give --seed-disk yes, or --metadata-token optional, or ec2 first in --dialects with -H boot_report=user-data',
    };
  }
  const readsNoVendorData = datasource === 'Ec2' || datasource === 'GCE';
  if (!readsNoVendorData || hvparams.boot_report === 'user-data') return null;
  return {
    reason: `cloud-init with the ${datasource === 'Ec2' ? 'EC2' : datasource} datasource reads no vendor data, and so is not asked to report`,
    hint: 'Give -H boot_report=user-data, or --seed-disk yes, or openstack or nocloud first in --dialects',
  };
}
