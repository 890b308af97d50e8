import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import type { Schemas } from '../../../client/api-client.ts';
import { commandOf } from '../../commands/command-of.ts';
import { backgroundApi, seesCluster } from '../../live/session.ts';
import { submit } from '../../live/submit.ts';
import { useLoaded } from '../../live/use-loaded.ts';
import { ask } from '../../parts/ask.tsx';
import { Equivalent } from '../../parts/equivalent.tsx';
import { Failure } from '../../parts/failure.tsx';
import { CheckField, TextField } from '../../parts/field.tsx';
import { Text } from '../../parts/text.tsx';
import { Page } from '../../shell/page.tsx';
import { instancePath, Link, navigate } from '../../shell/router.tsx';
import { CheckLine, faultsOfCheck } from './check-line.tsx';
import { HooksEditor, ParametersEditor } from './editors.tsx';
import {
  EMPTY_FORM,
  faultsOfInstallation,
  type InstallForm,
  toInstallation,
} from './install-form.ts';
import { type Choices, loadChoices } from './load-choices.ts';
import { OsFields, PackageFields } from './os-fields.tsx';
import { useCheck, useImage } from './use-check.ts';

type Info = Schemas['InstanceInfo'];
/** Seconds for a running guest to shut down, as the default of `gnt-instance shutdown`. */
const SHUTDOWN_S = 120;

/** Installs an instance again. Empty fields keep the stored settings. */
export function ReinstallPage({ name }: { readonly name: string }): JSX.Element {
  const loaded = useLoaded(
    async (signal) => {
      const [{ data: instance }, choices] = await Promise.all([
        backgroundApi.GET('/v1/instances/{name}', { params: { path: { name } }, signal }),
        loadChoices(backgroundApi, seesCluster.value, signal),
      ]);
      return instance && { instance, choices };
    },
    [name],
  );
  return (
    <Page
      title={`Reinstall ${name}`}
      actions={
        <Link to={instancePath(name)} class="button">
          Back to the instance
        </Link>
      }
    >
      {loaded.error.value !== undefined && <Failure error={loaded.error.value} />}
      {loaded.value.value !== undefined && <ReinstallForm {...loaded.value.value} />}
    </Page>
  );
}

interface ReinstallFormProps {
  readonly instance: Info;
  readonly choices: Choices;
}

function ReinstallForm({ instance, choices }: ReinstallFormProps): JSX.Element {
  const { name, secretNames } = instance;
  const form = useSignal<InstallForm>({
    ...EMPTY_FORM,
    name,
    // Secrets are never stored, so each one is asked for again.
    parameters: secretNames.map((secret) => ({ name: secret, value: '', visibility: 'secret' })),
  });
  const isRunning = instance.running !== null;
  const stops = useSignal(isRunning);
  const isSending = useSignal(false);
  const refusal = useSignal<unknown>(undefined);
  const current = form.value;
  const lookup = useImage(current.image).value;
  const isLookedUp = lookup.of === current.image.trim();
  const image = isLookedUp ? lookup.image : undefined;
  const own = faultsOfInstallation(current);
  const isComplete = Object.keys(own).length === 0 && isLookedUp && lookup.failure === undefined;
  const opcode = {
    opcode: 'INSTANCE_REINSTALL',
    name,
    ...toInstallation(withoutEmptySecrets(current), image),
    ...(stops.value && { shutdownTimeoutS: SHUTDOWN_S }),
  } as const;
  const check = useCheck(isComplete ? opcode : undefined).value;
  const found = { ...faultsOfCheck(check), ...own };
  if (isLookedUp && lookup.failure !== undefined) found.image = lookup.failure.message;
  const faultOf = (field: keyof InstallForm): string | undefined => found[field];
  const change = (part: Partial<InstallForm>): void => {
    form.value = { ...form.value, ...part };
    refusal.value = undefined;
  };
  const send = async (): Promise<void> => {
    if (!isComplete || isSending.value) return;
    const text = 'All data on the disks of the instance is removed.';
    const { text: command } = commandOf(opcode);
    const title = `Reinstall ${name}?`;
    if (!(await ask({ title, text, yes: 'Reinstall', confirm: name, command }))) return;
    isSending.value = true;
    try {
      await submit(opcode);
      navigate(instancePath(name, 'installation'));
    } catch (error) {
      refusal.value = error;
    } finally {
      isSending.value = false;
    }
  };
  return (
    <form
      class="launch"
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      <section class="panel fields">
        <p>
          Empty fields keep the stored settings. The old disks stay until the installation has
          succeeded, if there is room for both.
        </p>
        <TextField
          label="Image"
          value={current.image}
          placeholder={instance.osImage ?? 'none'}
          list={choices.images.map((each) => each.name)}
          help="A name of a catalogue, an https URL, or a path on the node."
          fault={faultOf('image')}
          onChange={(next) => change({ image: next })}
        />
        {secretNames.length > 0 && (
          <p role="note">
            Secrets are never stored. Give these again, or remove their rows if the installation
            does not need them: <Text>{secretNames.join(', ')}</Text>.
          </p>
        )}
        <ParametersEditor
          rows={current.parameters}
          declared={choices.declaredOf(current.osType || (instance.osType ?? ''))}
          fault={faultOf('parameters')}
          onChange={(parameters) => change({ parameters })}
        />
        {isRunning && (
          <CheckField
            label="Shut the running guest down first"
            isChecked={stops.value}
            onChange={(isChecked) => {
              stops.value = isChecked;
            }}
          />
        )}
      </section>
      <details class="panel">
        <summary>OS definition and profiles</summary>
        <div class="fields">
          <OsFields form={current} choices={choices} faultOf={faultOf} change={change} />
        </div>
      </details>
      <details class="panel" open={found.packagePassword !== undefined || undefined}>
        <summary>Personalization package and hooks</summary>
        <div class="fields">
          <PackageFields form={current} faultOf={faultOf} change={change} />
          <HooksEditor
            rows={current.hooks}
            steps={check.hookSteps}
            fault={faultOf('hooks')}
            onChange={(hooks) => change({ hooks })}
          />
        </div>
      </details>
      <section class="panel fields">
        {refusal.value !== undefined && <Failure error={refusal.value} />}
        <CheckLine check={check} isComplete={isComplete} />
        <div class="actions">
          <button type="submit" class="danger" disabled={isSending.value || !isComplete}>
            Reinstall
          </button>
        </div>
      </section>
      <Equivalent
        opcode={opcode}
        imageName={image === undefined ? undefined : current.image.trim()}
      />
    </form>
  );
}

/** An empty secret is not a value: the node names the secrets that it needs. */
function withoutEmptySecrets(form: InstallForm): InstallForm {
  const parameters = form.parameters.filter(
    ({ value, visibility }) => visibility !== 'secret' || value !== '',
  );
  return { ...form, parameters };
}
