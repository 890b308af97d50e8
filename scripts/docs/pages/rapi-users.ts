import { REALM } from '../../../noded/rapi/users-file.ts';
import { bullets, code, heading, paragraph, terms } from '../../../cluster-cli/manual/page.ts';
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
      ]),
      heading('Bound users'),
      bullets([
        'A bound user sees and changes the instances that match one of the tags or names, and their jobs.',
        'A new instance must have a matching name or tag. A bound user cannot change tags or profiles.',
        'NICs of a bound user have `mode=user` or use `br0`; `link:` allows others.',
        '`link:` needs `tag:` or `instance:` beside it. A user has at most 100 options.',
      ]),
      heading('Examples'),
      code(
        [
          `printf 'deploy {HA1}%s write\\n' \\`,
          `    "$(printf %s "deploy:${REALM}:$PASSWORD" | md5sum | cut -c-32)" >>/etc/gnt/rapi-users`,
          'chmod 0600 /etc/gnt/rapi-users',
        ].join('\n'),
        'sh',
      ),
      code('team-a {HA1}0123456789abcdef0123456789abcdef write,tag:team-a,link:br-team-a'),
    ],
    seeAlso: ['gnt-rapi(7)', 'gnt-noded(8)'],
  });
}
