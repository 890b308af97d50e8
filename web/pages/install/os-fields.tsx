import type { JSX } from 'preact';
import { PasswordField, SelectField, TextField } from '../../parts/field.tsx';
import { seesCluster } from '../../live/session.ts';
import type { InstallForm } from './install-form.ts';
import type { Choices } from './load-choices.ts';

interface PartProps<Form> {
  readonly form: Form;
  readonly faultOf: (field: keyof InstallForm) => string | undefined;
  readonly change: (part: Partial<InstallForm>) => void;
}

interface OsFieldsProps extends PartProps<Pick<InstallForm, 'osType' | 'profiles' | 'bootEnv'>> {
  readonly choices: Choices;
}

/** Chooses the OS definition, profiles and the boot environment. */
export function OsFields({ form, choices, faultOf, change }: OsFieldsProps): JSX.Element {
  return (
    <>
      <SelectField
        label="OS definition"
        value={form.osType}
        options={[
          ['', 'None: the image is complete'],
          ...choices.osTypes.map((name) => [name, name] as const),
        ]}
        help="Its scripts run after the image is written, or create the disks without an image."
        fault={faultOf('osType')}
        onChange={(osType) => change({ osType })}
      />
      {seesCluster.value && (
        <TextField
          label="Profiles"
          value={form.profiles}
          list={choices.profiles}
          help="Sets of OS parameters, separated by commas. The first ranks above the others."
          fault={faultOf('profiles')}
          onChange={(profiles) => change({ profiles })}
        />
      )}
      {choices.bootEnvs.length > 0 && (
        <SelectField
          label="Boot environment"
          value={form.bootEnv}
          options={[['', 'None'], ...choices.bootEnvs.map((name) => [name, name] as const)]}
          fault={faultOf('bootEnv')}
          onChange={(bootEnv) => change({ bootEnv })}
        />
      )}
    </>
  );
}

type Package = Pick<
  InstallForm,
  'packageSource' | 'packageChecksum' | 'packageUser' | 'packagePassword'
>;

/** Chooses the personalization package and its login. */
export function PackageFields({ form, faultOf, change }: PartProps<Package>): JSX.Element {
  return (
    <>
      <TextField
        label="Personalization package"
        value={form.packageSource}
        placeholder="https://example.com/site.tar.gz"
        help="A .tar.gz archive, unpacked over the installed file system as the last step."
        fault={faultOf('packageSource')}
        onChange={(packageSource) => change({ packageSource })}
      />
      <TextField
        label="Checksum of the package"
        value={form.packageChecksum}
        placeholder="sha256:…"
        help="A package with another checksum is refused."
        fault={faultOf('packageChecksum')}
        onChange={(packageChecksum) => change({ packageChecksum })}
      />
      <div class="columns narrow">
        <TextField
          label="User of the package"
          value={form.packageUser}
          fault={faultOf('packageUser')}
          onChange={(packageUser) => change({ packageUser })}
        />
        <PasswordField
          label="Password of the package"
          value={form.packagePassword}
          help="Used for this download and never stored."
          fault={faultOf('packagePassword')}
          onChange={(packagePassword) => change({ packagePassword })}
        />
      </div>
    </>
  );
}
