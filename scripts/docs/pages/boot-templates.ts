import { type Block, heading, paragraph, table, terms } from '../../../cluster-cli/manual/page.ts';
import { listRefusedFunctions } from '../../../noded/netboot/template/functions/refused.ts';
import { listFunctionNames } from '../../../noded/netboot/template/render-templates.ts';
import { documented, type DocumentedPage } from '../documented-page.ts';

/** Rendering of a member of dr-provision: its value, a constant, or an error. */
type Support = 'supported' | 'constant' | 'refused' | 'added';
export type MemberTable = Readonly<Record<string, readonly [Support, string]>>;

const URL_TEXT = 'The URL of the file root';
const TOKEN_TEXT = '`no-token`: there is no API, and guests report at `install/events`';

/** Members of the template data, by the name of their struct. */
export const bootTemplateMembers: Readonly<Record<string, MemberTable>> = {
  '': {
    ApiHostURL: ['constant', URL_TEXT],
    ApiURL: ['constant', URL_TEXT],
    BootParams: [
      'supported',
      'The rendered BootParams; in files named `*.ipxe` after an `initrd=NAME` word per initrd',
    ],
    BootParamsFor: ['supported', 'The same for an architecture, which is amd64'],
    CallTemplate: ['supported', 'Renders the template of a name'],
    ComposeParam: ['supported', 'The same as `.ParamCompose`'],
    CurrentJob: ['refused', 'BootEnvs have no tasks'],
    Env: ['supported', 'The BootEnv'],
    GenerateInfiniteToken: ['constant', TOKEN_TEXT],
    GenerateProfileToken: ['constant', TOKEN_TEXT],
    GenerateToken: ['constant', TOKEN_TEXT],
    Info: ['constant', 'The server: address and port of the file root, no version'],
    InstallRepos: ['supported', 'One repository to install from, and one of security updates'],
    Machine: ['supported', 'The instance'],
    MachineRepos: ['supported', 'The repositories of the system that is installed'],
    ObjectExpand: ['supported', 'Renders the texts in a value, its lists and maps included'],
    Param: ['supported', 'An OS parameter, else the default of its schema'],
    ParamAsJSON: ['supported', 'The same as JSON'],
    ParamAsYAML: ['supported', 'The same as YAML'],
    ParamCompose: ['supported', 'The values of all layers, joined'],
    ParamComposeExpand: ['supported', 'The same, expanded like `.ParamExpand`'],
    ParamExists: ['supported', 'Whether a parameter or a default exists'],
    ParamExpand: ['supported', 'A parameter whose texts are rendered as templates'],
    ParseURL: ['supported', '`scheme`, `host` or `path` of a URL'],
    ParseUrl: ['supported', 'The same as `.ParseURL`'],
    PlainBootParams: ['added', '`.BootParams` without the words for initrds'],
    ProvisionerAddress: ['supported', 'The address of the metadata service'],
    ProvisionerHostURL: ['constant', URL_TEXT],
    ProvisionerURL: ['supported', URL_TEXT],
    Repos: ['supported', 'The repositories with one of the given tags'],
    SecureProvisionerHostURL: ['constant', URL_TEXT],
    SecureProvisionerURL: ['constant', URL_TEXT],
    Stage: ['refused', 'BootEnvs have no stages'],
    StringExpand: ['supported', 'Renders a text as a template'],
    Task: ['refused', 'BootEnvs have no tasks'],
  },
  Machine: {
    Address: ['supported', 'The address of the channel'],
    Arch: ['constant', '`amd64`'],
    BootEnv: ['supported', 'The name of the BootEnv'],
    Context: ['constant', 'Empty'],
    Description: ['constant', 'Empty'],
    HardwareAddrs: ['supported', "A list with the MAC address of the channel's NIC"],
    HexAddress: ['supported', 'The address in hexadecimal digits'],
    Locked: ['constant', '`false`'],
    MacAddr: ['supported', 'The MAC address as `raw`, `ipxe`, `grub`, `pxelinux` or `rpi4`'],
    Meta: ['constant', 'An empty map'],
    Name: ['supported', "The instance's name"],
    OS: ['supported', 'The system that the BootEnv installs or boots'],
    Params: ['supported', 'The public OS parameters of the instance itself'],
    Path: ['supported', 'Path of its own files, below the file root'],
    Pool: ['constant', '`default`'],
    Profiles: ['supported', 'The names of its profiles'],
    Runnable: ['constant', '`true`'],
    ShortName: ['supported', 'The first label of its name'],
    Stage: ['constant', '`none`'],
    Tasks: ['constant', 'An empty list'],
    UUID: ['supported', "The instance's UUID"],
    Url: ['supported', 'URL of its own files'],
    Uuid: ['supported', "The instance's UUID"],
    Workflow: ['constant', 'Empty'],
  },
  Env: {
    BootParams: ['supported', 'The same as `.BootParams`'],
    BootParamsFor: ['supported', 'The same as `.BootParamsFor`'],
    Description: ['supported', 'Its Description'],
    Initrds: ['supported', 'Paths of the initrds'],
    InitrdsFor: ['supported', 'The same for amd64'],
    InstallUrl: ['supported', 'URL of the archive or repository that it boots from'],
    JoinInitrds: ['supported', 'URLs of the initrds, separated by commas'],
    JoinInitrdsFor: ['supported', 'The same for amd64'],
    Kernel: ['supported', 'Path of the kernel'],
    KernelFor: ['supported', 'The same for amd64'],
    Name: ['supported', 'Its name'],
    OS: ['supported', 'Its system'],
    PathFor: ['supported', 'URL (`http`) or path (`tftp`) of a file to boot'],
    PathForArch: ['supported', 'The same for amd64'],
  },
  'Env.OS': {
    Codename: ['supported', 'As the BootEnv has it'],
    Family: ['supported', 'As the BootEnv has it'],
    FamilyName: ['supported', 'The Family, else the first word of the Name'],
    FamilyType: ['supported', '`rhel` or `debian` for their derivatives, else the FamilyName'],
    FamilyVersion: ['supported', 'The Version, else the second word of the Name'],
    Name: ['supported', 'As the BootEnv has it'],
    SupportedArchitectures: ['supported', 'A map with `amd64`'],
    Version: ['supported', 'As the BootEnv has it'],
    VersionEq: ['supported', 'Whether the FamilyVersion begins with the parts of a version'],
  },
  Repo: {
    Arch: ['supported', 'Its architecture'],
    BootLoc: ['supported', 'URL of its kernels'],
    Components: ['supported', 'Its components'],
    Distribution: ['supported', 'Its distribution'],
    Install: ['supported', "Lines for the installer's answers, of its release"],
    InstallSource: ['supported', 'Whether a system is installed from it'],
    JoinedComponents: ['supported', 'Its components, separated by spaces'],
    Lines: ['supported', 'Lines of the package manager; yum gets `gpgcheck=0`'],
    OS: ['supported', 'The systems that it is for'],
    PackageType: ['supported', 'As the entry has it'],
    R: ['supported', 'The data of the whole template'],
    RepoType: ['supported', '`apt`, `yum` or `zypp`'],
    SecuritySource: ['supported', 'Whether it has security updates'],
    Tag: ['supported', 'Its tag'],
    Target: ['supported', 'The system that the BootEnv installs'],
    URL: ['supported', 'Its URL'],
    UrlFor: ['supported', 'URL of a component'],
  },
};

export function bootTemplatesPage(): DocumentedPage {
  return documented(
    'boot-templates.md',
    'Members and functions of boot templates',
    {
      name: 'boot-templates',
      section: 7,
      purpose: 'members and functions of the templates of boot environments',
      blocks: [
        paragraph(
          'Templates of boot environments have the members and functions of dr-provision. ' +
            'The constant ones name its API, which does not exist here. ' +
            '`gnt-bootenv render` reports the constants that a BootEnv reads.',
        ),
        ...Object.entries(bootTemplateMembers).flatMap(describe),
        heading('Functions'),
        paragraph(
          listFunctionNames()
            .map((name) => `\`${name}\``)
            .join(' '),
        ),
        heading('Refused functions'),
        terms(
          listRefusedFunctions().map(({ reason, names }) => [[...names].sort().join(', '), reason]),
        ),
      ],
    },
    false,
  );
}

function describe([struct, members]: readonly [string, MemberTable]): readonly Block[] {
  const prefix = struct === 'Repo' ? 'REPOSITORY.' : struct === '' ? '.' : `.${struct}.`;
  return [
    heading(struct === '' ? 'Members' : `Members of ${prefix.slice(0, -1)}`),
    table(
      ['Member', 'Support', 'Value'],
      Object.entries(members).map(([name, [support, text]]) => [
        `\`${prefix}${name}\``,
        support,
        text,
      ]),
    ),
  ];
}
