import { boundedRows } from '#shared/contract/parameter-keys.ts';
import { VCPUS_PER_CPU } from '../../../noded/instances/view/refuse-oversized.ts';
import { REALM } from '../../../noded/api/rapi/users-file.ts';
import {
  bullets,
  code,
  heading,
  paragraph,
  table,
  terms,
} from '../../../cluster-cli/manual/page.ts';
import { documented, type DocumentedPage } from '../documented-page.ts';

export function rapiUsersPage(): DocumentedPage {
  return documented('rapi-users.md', 'Users of the remote API', {
    name: 'gnt-rapi-users',
    section: 5,
    purpose: 'users file of the remote API',
    blocks: [
      heading('Description'),
      paragraph(
        '`/etc/gnt/rapi-users` lists the users of the remote API in the format of Ganeti, one per line. ' +
          'gnt-noded reads the file again when it changes. `--rapi-users` of gnt-noded names another file. ' +
          'The file should have the mode 0600.',
      ),
      heading('Format'),
      code('NAME {HA1}DIGEST [OPTION,...]'),
      paragraph(
        `DIGEST is the MD5 of \`NAME:${REALM}:PASSWORD\` in hexadecimal. Passwords in plain text are refused. ` +
          'Lines that begin with `#` are comments. A line with an unknown option creates no user; the log ' +
          'names its number.',
      ),
      heading('Options'),
      terms([
        ['read', 'Read access. This is the default.'],
        ['write', 'Read and write access.'],
        ['tag:TAG', 'Bind the user to instances with this tag.'],
        ['instance:PATTERN', 'Bind the user to instances with these names. `*` matches any text.'],
        ['link:PATTERN', 'Bridges and networks that NICs of a bound user may use.'],
        ['max-instances:N', 'Quota of instances of a bound user.'],
        ['max-memory:SIZE', 'Quota of memory, such as `64G`. Without a unit it is MiB.'],
        ['max-vcpus:N', 'Quota of virtual CPUs.'],
        ['max-disk:SIZE', 'Quota of disk space, such as `1T`.'],
      ]),
      heading('Bound users'),
      bullets([
        'A bound user sees and changes the instances that match one of the tags or names, and their jobs.',
        'A new instance must have a matching name or tag. A bound user cannot change tags or profiles.',
        'NICs of a bound user have `mode=user` or use `br0`; `link:` allows others.',
        '`link:` and quotas need `tag:` or `instance:` beside them. A user has at most 100 options.',
      ]),
      heading('Quotas'),
      paragraph(
        'A quota limits the sum over all instances that the user sees, in the whole cluster. An operation ' +
          'that would exceed a quota is refused with `QUOTA_EXCEEDED` before it changes anything. ' +
          'Unfinished jobs of bound users count.',
      ),
      bullets([
        'Stopped instances count as running ones.',
        'A running instance counts with its memory and vcpus at its last start, if these are larger.',
        'Each disk counts with its full size, and each snapshot as much as the disks that it holds.',
        'Users with a common tag or name count the same instances, also those of unbound users.',
        'A lowered quota refuses growth only.',
      ]),
      heading('Parameters'),
      paragraph(
        'A bound user sets these parameters up to the limit, or up to the value that an unbound user gave. ' +
          'Other parameters have the same limits for all users.',
      ),
      table(
        ['Parameter', 'Bound users', 'Other users'],
        [
          ['`memory`', 'the memory of the node', 'the memory of the node'],
          ['`vcpus`', 'processors of the node', `${VCPUS_PER_CPU} per processor of the node`],
          ...boundedRows.map(([key, { default: usual, type }]) => [
            `\`${key}\``,
            String(usual),
            'most' in type ? String(type.most) : '',
          ]),
        ],
      ),
      heading('Examples'),
      code(
        [
          `printf 'deploy {HA1}%s write\\n' \\`,
          `    "$(printf %s "deploy:${REALM}:$PASSWORD" | md5sum | cut -c-32)" >>/etc/gnt/rapi-users`,
          'chmod 0600 /etc/gnt/rapi-users',
        ].join('\n'),
        'sh',
      ),
      code(
        'team-a {HA1}0123456789abcdef0123456789abcdef ' +
          'write,tag:team-a,link:br-team-a,max-memory:64G,max-disk:1T',
      ),
    ],
    seeAlso: ['gnt-rapi(7)', 'gnt-noded(8)'],
  });
}
