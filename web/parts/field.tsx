import type { ComponentChildren, JSX } from 'preact';
import { useId } from 'preact/hooks';
import { Text } from './text.tsx';

interface ControlProps {
  readonly id: string;
  readonly 'aria-describedby': string | undefined;
  readonly 'aria-invalid': boolean;
}

interface FieldProps {
  readonly label: string;
  /** One sentence below the control. */
  readonly help?: ComponentChildren;
  readonly fault?: string | undefined;
  readonly children: (control: ControlProps) => JSX.Element;
}

/** A control with its label, its help and its fault. */
export function Field({ label, help, fault, children }: FieldProps): JSX.Element {
  const id = useId();
  const described = [help && `${id}-help`, fault && `${id}-fault`].filter(Boolean).join(' ');
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children({ id, 'aria-describedby': described || undefined, 'aria-invalid': !!fault })}
      {fault && (
        <p class="problem" id={`${id}-fault`}>
          <Text>{fault}</Text>
        </p>
      )}
      {help && (
        <p class="help" id={`${id}-help`}>
          {help}
        </p>
      )}
    </div>
  );
}

interface TextFieldProps extends Omit<FieldProps, 'children'> {
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly placeholder?: string | undefined;
  /** Proposed values. */
  readonly list?: readonly string[];
  readonly isRequired?: boolean;
}

/** A field of one line. */
export function TextField(props: TextFieldProps): JSX.Element {
  const { value, onChange, placeholder, list, isRequired = false, ...field } = props;
  const listId = useId();
  return (
    <Field {...field}>
      {(control) => (
        <>
          <input
            {...control}
            type="text"
            value={value}
            placeholder={placeholder}
            list={list && listId}
            required={isRequired}
            autocomplete="off"
            spellcheck={false}
            onInput={(event) => onChange(event.currentTarget.value)}
          />
          {list && (
            <datalist id={listId}>
              {list.map((each) => (
                <option key={each} value={each} />
              ))}
            </datalist>
          )}
        </>
      )}
    </Field>
  );
}

/** A field of one line whose text is hidden, and which browsers do not remember. */
export function PasswordField({
  value,
  onChange,
  ...field
}: Omit<TextFieldProps, 'list' | 'placeholder' | 'isRequired'>): JSX.Element {
  return (
    <Field {...field}>
      {(control) => (
        <input
          {...control}
          type="password"
          value={value}
          autocomplete="new-password"
          onInput={(event) => onChange(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}

interface AreaFieldProps extends Omit<FieldProps, 'children'> {
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly placeholder?: string;
  readonly rows?: number;
}

/** A field of several lines. */
export function AreaField(props: AreaFieldProps): JSX.Element {
  const { value, onChange, placeholder, rows = 3, ...field } = props;
  return (
    <Field {...field}>
      {(control) => (
        <textarea
          {...control}
          class="mono"
          rows={rows}
          value={value}
          placeholder={placeholder}
          spellcheck={false}
          onInput={(event) => onChange(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}

interface SelectFieldProps<Value extends string> extends Omit<FieldProps, 'children'> {
  readonly value: Value;
  readonly options: readonly (readonly [Value, string])[];
  readonly onChange: (value: Value) => void;
}

/** A choice of one value. */
export function SelectField<Value extends string>(props: SelectFieldProps<Value>): JSX.Element {
  const { value, options, onChange, ...field } = props;
  return (
    <Field {...field}>
      {(control) => (
        <select
          {...control}
          value={value}
          onChange={(event) => {
            const chosen = options.find(([each]) => each === event.currentTarget.value);
            if (chosen !== undefined) onChange(chosen[0]);
          }}
        >
          {options.map(([each, title]) => (
            <option key={each} value={each}>
              {title}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

interface CheckFieldProps {
  readonly label: string;
  readonly isChecked: boolean;
  readonly onChange: (isChecked: boolean) => void;
}

export function CheckField({ label, isChecked, onChange }: CheckFieldProps): JSX.Element {
  return (
    <label class="inline">
      <input
        type="checkbox"
        checked={isChecked}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
      {label}
    </label>
  );
}
