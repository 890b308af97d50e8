import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { backgroundApi, seesCluster } from '../../live/session.ts';
import { submit } from '../../live/submit.ts';
import { useLoaded } from '../../live/use-loaded.ts';
import { Equivalent } from '../../parts/equivalent.tsx';
import { Failure } from '../../parts/failure.tsx';
import { AreaField, CheckField, SelectField, TextField } from '../../parts/field.tsx';
import { formatBytes, formatMiB, formatNumber } from '../../parts/format.ts';
import { Text } from '../../parts/text.tsx';
import { Page } from '../../shell/page.tsx';
import { instancePath, navigate, query } from '../../shell/router.tsx';
import { CheckLine, faultsOfCheck } from './check-line.tsx';
import { DisksEditor, HooksEditor, NicsEditor, ParametersEditor } from './editors.tsx';
import {
  chooseDiskBytes,
  EMPTY_FORM,
  findFaults,
  type InstallForm,
  toCreate,
} from './install-form.ts';
import { type Choices, loadChoices } from './load-choices.ts';
import { OsFields, PackageFields } from './os-fields.tsx';
import { type Lookup, useCheck, useImage } from './use-check.ts';

const DEFAULT_MEMORY_MIB = 512;

/** Creates an instance: the image and its size first, everything else folded. */
export function LaunchPage(): JSX.Element {
  const choices = useLoaded((signal) => loadChoices(backgroundApi, seesCluster.value, signal), []);
  return (
    <Page title="Launch an instance">
      {choices.error.value !== undefined && <Failure error={choices.error.value} />}
      {choices.value.value !== undefined && <LaunchForm choices={choices.value.value} />}
    </Page>
  );
}

function LaunchForm({ choices }: { readonly choices: Choices }): JSX.Element {
  const form = useSignal<InstallForm>({
    ...EMPTY_FORM,
    image: query.value.get('image') ?? '',
  });
  const isTouched = useSignal<Touched>({});
  const isSending = useSignal(false);
  const refusal = useSignal<unknown>(undefined);
  const current = form.value;
  const lookup = useImage(current.image).value;
  const isLookedUp = lookup.of === current.image.trim();
  const own = findFaults(current, isLookedUp ? lookup.image : undefined);
  const isComplete = Object.keys(own).length === 0 && isLookedUp && lookup.failure === undefined;
  const opcode = toCreate(current, choices.defaults, isLookedUp ? lookup.image : undefined);
  const check = useCheck(isComplete ? opcode : undefined).value;
  const found = { ...faultsOfCheck(check), ...own };
  if (isLookedUp && lookup.failure !== undefined) found.image = lookup.failure.message;
  // A field that the user has not reached yet shows no fault.
  const faultOf = (field: keyof InstallForm): string | undefined =>
    isTouched.value[field] ? found[field] : undefined;
  const change = (part: Partial<InstallForm>): void => {
    form.value = { ...form.value, ...part };
    isTouched.value = { ...isTouched.value, ...touchedBy(part) };
    refusal.value = undefined;
  };
  const send = async (): Promise<void> => {
    isTouched.value = touchedBy(EMPTY_FORM);
    if (!isComplete || isSending.value) {
      // After the fields have shown their faults.
      setTimeout(() => document.querySelector<HTMLElement>('form [aria-invalid="true"]')?.focus());
      return;
    }
    isSending.value = true;
    try {
      await submit(opcode);
      navigate(instancePath(opcode.name, 'installation'));
    } catch (error) {
      refusal.value = error;
    } finally {
      isSending.value = false;
    }
  };
  const isNamed = lookup.image !== undefined && isLookedUp;
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
        <TextField
          label="Name"
          value={current.name}
          isRequired
          placeholder="web1"
          help="It becomes the host name of the guest."
          fault={faultOf('name')}
          onChange={(name) => change({ name })}
        />
        <TextField
          label="Image"
          value={current.image}
          isRequired
          placeholder="debian/12"
          list={choices.images.map(({ name }) => name)}
          help={<ImageFacts lookup={lookup} />}
          fault={faultOf('image')}
          onChange={(image) => change({ image })}
        />
        <div class="columns narrow">
          <TextField
            label="Disk"
            value={current.size}
            placeholder={formatBytes(
              chooseDiskBytes('', choices.defaults, lookup.image?.minDiskBytes) ?? 0,
            )}
            help="Such as 20G."
            fault={faultOf('size')}
            onChange={(size) => change({ size })}
          />
          <TextField
            label="Memory"
            value={current.memory}
            placeholder={formatMiB(choices.defaults.memoryMiB ?? DEFAULT_MEMORY_MIB)}
            help="Such as 2G."
            fault={faultOf('memory')}
            onChange={(memory) => change({ memory })}
          />
          <TextField
            label="Processors"
            value={current.vcpus}
            placeholder={formatNumber(choices.defaults.vcpus ?? 1)}
            fault={faultOf('vcpus')}
            onChange={(vcpus) => change({ vcpus })}
          />
        </div>
        <AreaField
          label="Public SSH keys"
          value={current.keys}
          placeholder="ssh-ed25519 AAAA… me@laptop"
          help="One per line, from ~/.ssh/*.pub. You log in with them: gnt-instance ssh."
          fault={faultOf('keys')}
          onChange={(keys) => change({ keys })}
        />
      </section>
      <Details summary="Network" of={['nics', 'communication']} faultOf={faultOf}>
        <NicsEditor
          rows={current.nics}
          networks={choices.networks}
          fault={faultOf('nics')}
          onChange={(nics) => change({ nics })}
        />
        <CheckField
          label="Channel to the node, which serves metadata and user data"
          isChecked={current.communication}
          onChange={(communication) => change({ communication })}
        />
      </Details>
      <Details summary="Disks" of={['disks', 'diskTemplate']} faultOf={faultOf}>
        <DisksEditor
          rows={current.disks}
          fault={faultOf('disks')}
          onChange={(disks) => change({ disks })}
        />
        <SelectField
          label="Disk template"
          value={current.diskTemplate}
          options={[
            ['file', 'file: files of the node'],
            ['sharedfile', 'sharedfile: files of a shared folder'],
            ['plain', 'plain: volumes of LVM'],
            ['zfs', 'zfs: volumes of ZFS'],
          ]}
          fault={faultOf('diskTemplate')}
          onChange={(diskTemplate) => change({ diskTemplate })}
        />
      </Details>
      <Details
        summary="User data, node and tags"
        of={['userData', 'node', 'tags']}
        faultOf={faultOf}
      >
        <AreaField
          label="User data"
          value={current.userData}
          placeholder="#cloud-config"
          rows={5}
          help="A document for cloud-init in the guest."
          fault={faultOf('userData')}
          onChange={(userData) => change({ userData })}
        />
        {seesCluster.value && (
          <SelectField
            label="Node"
            value={current.node}
            options={[
              ['', 'The node with the most room'],
              ...choices.nodes.map((name) => [name, name] as const),
            ]}
            fault={faultOf('node')}
            onChange={(node) => change({ node })}
          />
        )}
        {seesCluster.value && (
          <TextField
            label="Tags"
            value={current.tags}
            help="Separated by spaces."
            fault={faultOf('tags')}
            onChange={(tags) => change({ tags })}
          />
        )}
      </Details>
      <Details
        summary="OS definition, parameters, profiles"
        of={['osType', 'parameters', 'profiles', 'bootEnv']}
        faultOf={faultOf}
      >
        <OsFields form={current} choices={choices} faultOf={faultOf} change={change} />
        <ParametersEditor
          rows={current.parameters}
          declared={choices.declaredOf(current.osType)}
          fault={faultOf('parameters')}
          onChange={(parameters) => change({ parameters })}
        />
      </Details>
      <Details
        summary="Personalization package and hooks"
        of={['packageSource', 'packageChecksum', 'packageUser', 'packagePassword', 'hooks']}
        faultOf={faultOf}
      >
        <PackageFields form={current} faultOf={faultOf} change={change} />
        <HooksEditor
          rows={current.hooks}
          steps={check.hookSteps}
          fault={faultOf('hooks')}
          onChange={(hooks) => change({ hooks })}
        />
      </Details>
      <section class="panel fields">
        <CheckField
          label="Start the instance after the installation"
          isChecked={current.start}
          onChange={(start) => change({ start })}
        />
        <CheckField
          label="Remove the instance if its installation fails"
          isChecked={current.onFailure === 'remove'}
          onChange={(isRemoved) => change({ onFailure: isRemoved ? 'remove' : 'keep' })}
        />
        {refusal.value !== undefined && <Failure error={refusal.value} />}
        <CheckLine check={check} isComplete={isComplete} />
        <div class="actions">
          <button type="submit" class="primary" disabled={isSending.value}>
            Launch
          </button>
        </div>
      </section>
      <Equivalent
        opcode={{ ...opcode, name: opcode.name || 'NAME' }}
        imageName={isNamed ? current.image.trim() : undefined}
      />
    </form>
  );
}

type Touched = Readonly<Partial<Record<keyof InstallForm, true>>>;

function touchedBy(part: Partial<InstallForm>): Touched {
  // fromEntries returns any. The keys are those of the part.
  return Object.fromEntries(Object.keys(part).map((key) => [key, true]));
}

interface DetailsProps {
  readonly summary: string;
  /** Fields inside: a fault of one unfolds the part. */
  readonly of: readonly (keyof InstallForm)[];
  readonly faultOf: (field: keyof InstallForm) => string | undefined;
  readonly children: JSX.Element | readonly (JSX.Element | false)[];
}

function Details({ summary, of, faultOf, children }: DetailsProps): JSX.Element {
  const hasFault = of.some((field) => faultOf(field) !== undefined);
  return (
    <details class="panel" open={hasFault || undefined}>
      <summary>{summary}</summary>
      <div class="fields">{children}</div>
    </details>
  );
}

/** Shows the properties of the chosen image in its catalogue. */
function ImageFacts({ lookup: { image } }: { readonly lookup: Lookup }): JSX.Element {
  if (image === undefined) return <>A name of a catalogue, an https URL, or a path on the node.</>;
  const { user, minDiskBytes, isOffline } = image;
  return (
    <>
      <Text>{image.catalogue}</Text>
      {user !== null && (
        <>
          , login user <Text>{user}</Text>
        </>
      )}
      {minDiskBytes !== null && `, at least ${formatBytes(minDiskBytes)}`}
      {isOffline && '. The publisher does not answer; the image in the cache is used.'}
    </>
  );
}
