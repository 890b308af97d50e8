import { machinePath, type RenderInput } from './render-input.ts';
import { CallError } from './template/template-error.ts';
import { fixed, Struct, variadic, type Dict, type Value } from './template/values.ts';

export function machineData({ machine, baseUrl, bootEnv, params }: RenderInput): Struct {
  const { name, uuid, mac, address, profiles = [] } = machine;
  const fields = {
    Name: name,
    Uuid: uuid,
    Address: address,
    Arch: 'amd64',
    BootEnv: bootEnv.Name,
    Context: '',
    Description: '',
    HardwareAddrs: [mac],
    Locked: false,
    Meta: new Map<string, Value>(),
    OS: bootEnv.OS.Name,
    Pool: 'default',
    Profiles: profiles,
    Runnable: true,
    Stage: 'none',
    Tasks: [],
    Workflow: '',
  } as const satisfies Readonly<Record<string, Value>>;
  const members = {
    ...fields,
    ShortName: name.split('.')[0] ?? name,
    UUID: uuid,
    Path: machinePath(machine),
    Url: `${baseUrl}/${machinePath(machine)}`,
    HexAddress: address
      .split('.')
      .map((part) => Number(part).toString(16).padStart(2, '0').toUpperCase())
      .join(''),
    Params: fixed([], ({ spend }) => params.listPublic(spend)),
    MacAddr: variadic([], 'string', (_call, _fixed, [form = 'raw']) => macAs(form, mac)),
  };
  const asDict = (spend: (steps: number) => void): Dict =>
    new Map<string, Value>([...Object.entries(fields), ['Params', params.listPublic(spend)]]);
  return new Struct('Machine', members, asDict);
}

function macAs(form: string, mac: string): string {
  if (form === 'raw' || form === 'ipxe' || form === 'grub') return mac;
  if (form === 'pxe' || form === 'pxelinux') return `01-${mac.replaceAll(':', '-')}`;
  // A Raspberry Pi 4 asks for its files in a folder of this name.
  if (form === 'rpi4') return mac.replaceAll(':', '-');
  throw new CallError(`unknown form of a MAC address: ${JSON.stringify(form)}`);
}
