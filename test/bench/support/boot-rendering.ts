import { bootEnvDocument, foldBootEnv } from '#shared/contract/boot-env.ts';
import type { BootParameter, BootPlanInput } from '../../../noded/netboot/boot-plan.ts';
import { planBootEnv } from '../../../noded/netboot/plan-boot-env.ts';
import { median, type Report } from './measurement.ts';

const TEMPLATES = 20;
const LINES = 40;
const ROUNDS = 50;
/** One line in three has an action, as in a preseed file for Debian's installer. */
const ACTIONS = [
  'd-i mirror/http/directory string {{ .Param "key" | upper }}\n',
  'd-i netcfg/hostname string {{ .Machine.Name }}\n',
  '{{ if .ParamExists "none" }}d-i passwd/root-login boolean false\n{{ end }}',
];
const PLAIN = 'd-i partman/confirm_nooverwrite boolean true\n';

/** Measures rendering of a BootEnv with many files. */
export function measureRendering(report: Report): void {
  const input = createInput();
  const times = Array.from({ length: ROUNDS }, () => {
    const startedAt = performance.now();
    const { files } = planBootEnv(input);
    if (files.length !== TEMPLATES + 1) throw new Error('files are missing');
    return performance.now() - startedAt;
  });
  const name = `${TEMPLATES} templates of ${LINES} lines are rendered`;
  report({ name, value: median(times), unit: 'ms', compared_with: null });
}

function createInput(): BootPlanInput {
  const Contents = Array.from({ length: LINES }, (_, index) => ACTIONS[index % 10] ?? PLAIN).join(
    '',
  );
  const Templates = [
    { Name: 'ipxe', Path: '{{.Machine.MacAddr "ipxe"}}.ipxe', ID: 'default-ipxe.tmpl' },
    ...Array.from({ length: TEMPLATES }, (_, index) => ({
      Name: `file${index}`,
      Path: `{{.Machine.Path}}/file${index}`,
      Contents,
    })),
  ];
  const document = { Name: 'bench', OS: { Name: 'debian-12' }, Templates };
  const values = new Map<string, BootParameter>([
    ['key', { visibility: 'public', value: 'value' }],
  ]);
  return {
    machine: {
      ...{ name: 'web1.example.com', uuid: '3f0c8c6e-0000-4000-8000-000000000001' },
      ...{ mac: 'aa:00:00:12:34:56', address: '169.254.10.20' },
    },
    bootEnv: foldBootEnv(bootEnvDocument.parse(document)).bootEnv,
    ...{ templates: new Map(), schemas: new Map(), parameters: values, layers: [{ values }] },
    archive: () => null,
    isAllowed: () => true,
    mirrorUrl: () => null,
    packageMirrors: {},
    baseUrl: 'http://169.254.169.254/ganeti/latest/boot',
  };
}
