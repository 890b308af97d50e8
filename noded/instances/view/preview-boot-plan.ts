import type { BootParam } from '#shared/contract/boot-env.ts';
import type { BootPlanInfo } from '#shared/contract/boot-objects.ts';
import { LOCAL_BOOT_ENV } from '#shared/contract/boot-objects.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { REDACTED } from '#shared/contract/redacted.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { createMask } from '#shared/secret/mask.ts';
import { redactParam } from '../../netboot/params.ts';
import { type BootSources, loadBootPlan } from '../../netboot/load-boot-plan.ts';
import { loadParameterLayers, type ParameterSources } from '../parameters/load-parameters.ts';
import {
  listHiddenValues,
  type ParameterLayer,
  resolveParameters,
  revealValue,
} from '../parameters/os-parameters.ts';

/**
 * Returns the boot plan of an instance for an operator. A word replaces each private or secret
 * value before rendering, so that no template can turn the value into a form that a mask would
 * miss. For a param whose schema is not a string, the strings and numbers inside are replaced. A
 * file that needs a secret has no contents.
 * @param name of the BootEnv; null for the instance's own
 * @throws AppError of loadBootPlan, VALIDATION
 */
export async function previewBootPlan(
  instance: InstanceRecord,
  name: string | null,
  sources: BootSources & { readonly clusters: ParameterSources },
): Promise<BootPlanInfo> {
  const bootEnv = name ?? instance.bootEnv;
  if (bootEnv === null || bootEnv === LOCAL_BOOT_ENV) {
    throw new AppError(
      'VALIDATION',
      `'${instance.name}' boots from its disk: there is nothing to render`,
      {
        hint: 'Name a boot environment. List them: gnt-bootenv list',
      },
    );
  }
  const { clusters } = sources;
  const schemas = new Map((await clusters.listParams()).map((param) => [param.Name, param]));
  const real = await loadParameterLayers(instance, clusters);
  const layers = real.map((layer) => withoutValues(layer, schemas));
  const parameters = resolveParameters(layers);
  const { files, source, initrds, leftOut, constants, ...plan } = await loadBootPlan(
    bootEnv,
    instance,
    { parameters, layers },
    sources,
  );
  const mask = createMask(listHiddenValues(resolveParameters(real)));
  return {
    ...{ bootEnv: plan.bootEnv, script: plan.script, kernel: plan.kernel, source },
    initrds: [...initrds],
    leftOut: [...leftOut],
    constants: [...constants],
    files: files.map(({ path, contents, isSecretBearing, lostSecrets }) => ({
      ...{ path, isSecretBearing, lostSecrets: [...lostSecrets] },
      contents: contents !== null && isSecretBearing ? mask(contents) : contents,
    })),
  };
}

function withoutValues(
  layer: ParameterLayer,
  schemas: ReadonlyMap<string, BootParam>,
): ParameterLayer {
  const values = [...layer.values].map(([name, parameter]) => {
    const { visibility, value } = parameter;
    if (visibility === 'public') return [name, parameter] as const;
    const schema = schemas.get(name);
    // A secret may be known by name only. A string can still be replaced by a word.
    const text = revealValue(parameter) ?? '';
    const shown = redactParam(text, schema, REDACTED);
    if (value === null && shown === '') return [name, parameter] as const;
    return [name, { visibility: 'private', value: shown }] as const;
  });
  return { ...layer, values: new Map(values) };
}
