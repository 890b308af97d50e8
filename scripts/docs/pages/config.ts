import { code, heading, paragraph, terms } from '../../../cluster-cli/manual/page.ts';
import type { UserDefaults } from '../../../cluster-cli/commands/instance/user-defaults.ts';
import { documented, type DocumentedPage } from '../documented-page.ts';

/** A key of the file without a row does not compile. */
const KEYS: Readonly<Record<keyof UserDefaults, string>> = {
  size: 'Size of the first disk, such as `20G`.',
  memory: 'Memory, such as `2G`.',
  vcpus: 'Number of virtual processors.',
  net: 'First NIC in the syntax of `--net 0:`, or `none`. See `gnt-parameters(7)`.',
  ssh_keys: 'Files with public SSH keys, instead of `~/.ssh/*.pub` and the agent. At most 100.',
};

export function configPage(): DocumentedPage {
  return documented('config.md', 'Configuration files', {
    name: 'gnt-config',
    section: 5,
    purpose: 'configuration files of a user and of gnt-noded',
    blocks: [
      heading('Defaults of a user'),
      paragraph(
        '`~/.config/gnt/config.yaml` holds defaults of one user in YAML, at most 64 KiB. The file is ' +
          'optional. An option of the command takes precedence over the file, and the file takes ' +
          'precedence over the cluster settings.',
      ),
      paragraph('The key `launch` holds the defaults of `gnt-instance launch`:'),
      terms(Object.entries(KEYS)),
      code(
        ['launch:', '  size: 20G', '  memory: 2G', '  net: "mode=bridged,link=br0"'].join('\n'),
        'yaml',
      ),
      heading('Options of gnt-noded'),
      paragraph(
        'The systemd unit of the Debian package reads `/etc/default/gnt-noded`. ' +
          '`GNT_NODED_OPTIONS` holds the options of `gnt-noded(8)`:',
      ),
      code('GNT_NODED_OPTIONS="--max-installs 4 --image-cache-gib 40"', 'sh'),
      heading('Logins for servers'),
      paragraph(
        '`/etc/gnt/netrc` holds logins for image and package servers in the format of netrc(5): one ' +
          'line with `machine`, `login` and `password` per host. Only root may read the file.',
      ),
      code('machine images.example.com login deploy password SECRET'),
    ],
    seeAlso: ['gnt-noded(8)', 'gnt-instance-launch(8)', 'gnt-cluster-settings(7)', 'gnt-files(5)'],
  });
}
