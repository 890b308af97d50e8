import { constantMembers, refusedMembers } from './api-placeholders.ts';
import { encodeYaml } from './encode-yaml.ts';
import { bootParamsFunctions, envData } from './env-data.ts';
import type { ParamValue } from './params.ts';
import { machinePath, type RenderInput, type RenderUse } from './render-input.ts';
import { repositoryFunctions } from './repository-data.ts';
import { encodeJson } from './template/functions/encode-json.ts';
import { CallError } from './template/template-error.ts';
import {
  fixed,
  fromJson,
  GoFunction,
  isDict,
  isList,
  Struct,
  variadic,
  type Call,
  type Dict,
  type Value,
} from './template/values.ts';

/**
 * Makes the dot of a boot environment's templates: dr-provision's members.
 * @param use collects the parameters and constants that the file reads
 * @param filePath path of the file that is rendered, below the file root; empty for other texts
 */
export function createRenderData(input: RenderInput, use: RenderUse, filePath = ''): Struct {
  const { baseUrl, bootEnv } = input;
  const plainBootParams = (call: Call): string =>
    call.renderText('BootParams', bootEnv.OS.SupportedArchitectures.amd64.BootParams, data);
  const bootParams = bootParamsFunctions(bootEnv, filePath, plainBootParams);
  const params = createParams(input, use);
  const members: Record<string, Value | GoFunction> = {
    Machine: machineData(input),
    Env: envData(input, bootParams),
    ProvisionerURL: baseUrl,
    ProvisionerAddress: new URL(baseUrl).hostname,
    ...bootParams,
    PlainBootParams: fixed([], plainBootParams),
    CallTemplate: fixed(['string', 'any'], (call, name, dot) => call.renderTemplate(name, dot)),
    ParseURL: parseUrl,
    ParseUrl: parseUrl,
    ...paramFunctions(input, params, () => data),
    ...repositoryFunctions(input, {
      dot: () => data,
      param: (call, name) => (input.params.has(name) ? params.read(call, name) : null),
    }),
    ...constantMembers(baseUrl, use.constants),
    ...refusedMembers(),
  };
  const data = new Struct('RenderData', members);
  return data;
}

function machineData({ machine, baseUrl, bootEnv, params }: RenderInput): Struct {
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

function createParams({ params }: RenderInput, use: RenderUse) {
  const take = (call: Call, name: string, found: ParamValue | undefined): Value => {
    if (!found) throw new CallError(`param '${name}' does not exist`);
    if (found.kind === 'lost') {
      use.isSecretBearing = true;
      use.hasSecret = true;
      use.lostSecrets.add(name);
      return null;
    }
    if (found.isHidden) use.isSecretBearing = true;
    if (found.isSecret) use.hasSecret = true;
    call.spend(sizeOf(found.value));
    return fromJson(found.value);
  };
  return {
    read: (call: Call, name: string): Value => take(call, name, params.read(name, call.spend)),
    compose: (call: Call, name: string): Value =>
      take(call, name, params.compose(name, call.spend)),
  };
}

type Params = ReturnType<typeof createParams>;

function paramFunctions(
  { params }: RenderInput,
  { read, compose }: Params,
  dot: () => Value,
): Readonly<Record<string, GoFunction>> {
  return {
    Param: fixed(['string'], read),
    ParamExists: fixed(['string'], (_call, name) => params.has(name)),
    ParamCompose: fixed(['string'], compose),
    ComposeParam: fixed(['string'], compose),
    ParamExpand: fixed(['string'], (call, name) =>
      expand(call, `param ${name}`, read(call, name), dot()),
    ),
    ParamComposeExpand: fixed(['string'], (call, name) =>
      expand(call, `param ${name}`, compose(call, name), dot()),
    ),
    StringExpand: fixed(['string'], (call, text) => expand(call, 'StringExpand', text, dot())),
    ObjectExpand: fixed(['any'], (call, value) => expand(call, 'ObjectExpand', value, dot())),
    ParamAsJSON: fixed(['string'], (call, name) =>
      encodeJson(read(call, name), call.spend, { escapesHtml: true }),
    ),
    ParamAsYAML: fixed(['string'], (call, name) => encodeYaml(read(call, name), call.spend)),
  };
}

function sizeOf(value: unknown): number {
  return typeof value === 'string' ? value.length >> 5 : JSON.stringify(value).length >> 3;
}

const MAX_EXPAND_DEPTH = 100;

/**
 * Renders the texts in a value as templates, those in its lists and maps included.
 * @param name of the text in errors
 */
function expand(call: Call, name: string, value: Value, dot: Value, depth = 0): Value {
  call.spend(1);
  if (depth > MAX_EXPAND_DEPTH) throw new CallError('a value is nested too deeply to be expanded');
  const part = (each: Value): Value => expand(call, name, each, dot, depth + 1);
  if (typeof value === 'string') return call.renderText(name, value, dot);
  if (isList(value)) return value.map(part);
  if (!isDict(value)) return value;
  return new Map([...value].map(([key, each]) => [key, part(each)]));
}

const parseUrl = fixed(['string', 'string'], (_call, segment, text) => {
  if (!URL.canParse(text)) throw new CallError(`not a URL: ${JSON.stringify(text)}`);
  const url = new URL(text);
  if (segment === 'scheme') return url.protocol.slice(0, -1);
  if (segment === 'host') return url.host;
  if (segment === 'path') return url.pathname;
  throw new CallError(
    `a URL has the segments scheme, host and path, not ${JSON.stringify(segment)}`,
  );
});
