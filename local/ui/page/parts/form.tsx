import { createContext } from 'preact';
import type { ComponentChildren } from 'preact';
import { useContext, useEffect, useId, useRef, useState } from 'preact/hooks';
import { returns } from '../api/connection-state.ts';
import { ApiError, errorOf } from '../api/problem-text.ts';
import { Icon } from './icon.tsx';

/** The values of a form by the names of its fields. Toggles give `true` or an empty text. */
export type Values = Readonly<Record<string, string>>;

/** What is wrong with fields, by their names. */
export type Complaints = Readonly<Record<string, string>>;

const Wrong = createContext<Complaints>({});

export interface FormProps {
  readonly children: ComponentChildren;
  /** Looked at before it is sent; what it names is shown at the field, and nothing is sent. */
  readonly validate?: (values: Values) => Complaints;
  /** Rejects with what the node says of it, which is shown above the buttons; the form keeps what was typed. */
  readonly onSubmit: (values: Values) => Promise<void>;
  /** In place of the node's words. */
  readonly errorText?: (error: ApiError) => string;
  /** At which field an error of the node belongs, by its name. */
  readonly errorField?: (error: ApiError) => string | null;
  readonly buttons: (isBusy: boolean) => ComponentChildren;
}

export function Form({
  children,
  validate,
  onSubmit,
  errorText = ({ message }) => message,
  errorField,
  buttons,
}: FormProps) {
  const [wrong, setWrong] = useState<Complaints>({});
  const [failure, setFailure] = useState<ApiError | null>(null);
  const [isBusy, setBusy] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  const isShown = useRef(true);
  useEffect(
    () => () => {
      isShown.current = false;
    },
    [],
  );
  // That the node is away is no longer so once it is back.
  const back = returns.value;
  useEffect(() => setFailure((known) => (known?.isAway === true ? null : known)), [back]);

  const refuse = (complaints: Complaints) => {
    setWrong(complaints);
    const [first] = Object.keys(complaints);
    const field = first === undefined ? null : form.current?.elements.namedItem(first);
    if (field instanceof HTMLElement) field.focus();
  };
  const submit = async () => {
    const element = form.current!;
    const values = valuesOf(element);
    const complaints = { ...missing(element), ...validate?.(values) };
    setFailure(null);
    refuse(complaints);
    if (Object.keys(complaints).length > 0) return;
    setBusy(true);
    try {
      await onSubmit(values);
    } catch (thrown) {
      if (!isShown.current) return;
      const error = errorOf(thrown);
      const field = errorField?.(error) ?? null;
      if (field === null) setFailure(error);
      else refuse({ [field]: errorText(error) });
    } finally {
      if (isShown.current) setBusy(false);
    }
  };
  return (
    <form
      class="form"
      noValidate
      ref={form}
      onSubmit={(event) => {
        event.preventDefault();
        if (!isBusy) void submit();
      }}
    >
      <Wrong.Provider value={wrong}>{children}</Wrong.Provider>
      <div class="form-buttons">
        <div role="alert" class="form-error">
          {failure !== null && (
            <>
              <Icon name="error" size={16} />
              <span class="break">
                {errorText(failure)}
                {failure.hint !== null && ` ${failure.hint}`}
              </span>
            </>
          )}
        </div>
        {buttons(isBusy)}
      </div>
    </form>
  );
}

function valuesOf(form: HTMLFormElement): Values {
  return Object.fromEntries(
    Array.from(new FormData(form), ([name, value]) => [name, typeof value === 'string' ? value : '']),
  );
}

/** Required fields that are empty. The browser's own bubbles can be neither styled nor read again. */
function missing(form: HTMLFormElement): Complaints {
  const complaints: Record<string, string> = {};
  for (const field of form.elements) {
    if (
      !(
        field instanceof HTMLInputElement ||
        field instanceof HTMLTextAreaElement ||
        field instanceof HTMLSelectElement
      ) ||
      field.name === ''
    )
      continue;
    if (field.validity.valueMissing) complaints[field.name] = 'This field is required.';
    else if (!field.validity.valid) complaints[field.name] = field.validationMessage;
  }
  return complaints;
}

interface Labelled {
  readonly name: string;
  readonly label: string;
  /** Said below it: what it does, or how it is written. */
  readonly about?: ComponentChildren;
  readonly isDisabled?: boolean;
}

export interface FieldProps extends Labelled {
  readonly type?: 'text' | 'password' | 'number' | 'search' | 'datetime-local' | 'url';
  readonly value?: string;
  readonly placeholder?: string;
  readonly isRequired?: boolean;
  readonly isFocused?: boolean;
  /** More than one line. */
  readonly rows?: number;
  readonly isMono?: boolean;
  readonly min?: number;
  readonly max?: number;
  readonly step?: number | 'any';
  readonly maxLength?: number;
  readonly autocomplete?: string;
  readonly spellcheck?: boolean;
  readonly onInput?: (value: string) => void;
}

/** A line to type in. */
export function Field({
  name,
  label,
  about,
  type = 'text',
  value,
  placeholder,
  isRequired = false,
  isFocused = false,
  isDisabled = false,
  rows,
  isMono = false,
  min,
  max,
  step,
  maxLength,
  autocomplete = 'off',
  spellcheck,
  onInput,
}: FieldProps) {
  const { id, described, complaint } = useLabelled(name, about !== undefined);
  const common = {
    id,
    name,
    placeholder,
    required: isRequired,
    disabled: isDisabled,
    autofocus: isFocused,
    autocomplete,
    spellcheck,
    class: isMono ? 'mono' : '',
    'aria-invalid': complaint !== undefined || undefined,
    'aria-describedby': described,
    ...(maxLength !== undefined && { maxLength }),
    onInput: (event: { readonly currentTarget: { readonly value: string } }) => onInput?.(event.currentTarget.value),
  };
  return (
    <div class={`field${complaint === undefined ? '' : ' wrong'}`}>
      <label for={id}>
        {label}
        {!isRequired && type !== 'search' && <span class="faint optional"> optional</span>}
      </label>
      {rows !== undefined ? (
        <textarea {...common} rows={rows} defaultValue={value} />
      ) : (
        <input
          {...common}
          type={type as 'text'}
          {...(onInput === undefined ? { defaultValue: value } : { value })}
          min={min}
          max={max}
          step={step}
        />
      )}
      <Below id={id} about={about} complaint={complaint} />
    </div>
  );
}

export interface SelectProps extends Labelled {
  readonly value?: string;
  readonly options: readonly { readonly value: string; readonly label: string }[];
  readonly onChange?: (value: string) => void;
}

export function Select({ name, label, about, value, options, isDisabled = false, onChange }: SelectProps) {
  const { id, described, complaint } = useLabelled(name, about !== undefined);
  return (
    <div class={`field${complaint === undefined ? '' : ' wrong'}`}>
      <label for={id}>{label}</label>
      <select
        id={id}
        name={name}
        disabled={isDisabled}
        aria-describedby={described}
        onChange={(event) => onChange?.(event.currentTarget.value)}
      >
        {options.map((option) => (
          <option key={option.value} value={option.value} selected={option.value === value}>
            {option.label}
          </option>
        ))}
      </select>
      <Below id={id} about={about} complaint={complaint} />
    </div>
  );
}

export interface ToggleProps extends Labelled {
  readonly isOn?: boolean;
  readonly onChange?: (isOn: boolean) => void;
}

/** On or off. Given `onChange`, `isOn` says what it shows; else it keeps that itself. */
export function Toggle({ name, label, about, isOn = false, isDisabled = false, onChange }: ToggleProps) {
  const { id, described, complaint } = useLabelled(name, about !== undefined);
  return (
    <div class="field toggle">
      <input
        type="checkbox"
        role="switch"
        id={id}
        name={name}
        value="true"
        disabled={isDisabled}
        aria-describedby={described}
        {...(onChange === undefined ? { defaultChecked: isOn } : { checked: isOn })}
        onChange={(event) => onChange?.(event.currentTarget.checked)}
      />
      <label for={id}>{label}</label>
      <Below id={id} about={about} complaint={complaint} />
    </div>
  );
}

function useLabelled(name: string, hasAbout: boolean) {
  const id = useId();
  const complaint = useContext(Wrong)[name];
  const described = [hasAbout && `${id}-about`, complaint !== undefined && `${id}-wrong`]
    .filter((part) => part !== false)
    .join(' ');
  return { id, complaint, described: described === '' ? undefined : described };
}

function Below({
  id,
  about,
  complaint,
}: {
  readonly id: string;
  readonly about: ComponentChildren;
  readonly complaint: string | undefined;
}) {
  return (
    <>
      {about !== undefined && (
        <p id={`${id}-about`} class="field-about">
          {about}
        </p>
      )}
      {complaint !== undefined && (
        <p id={`${id}-wrong`} class="field-wrong">
          {complaint}
        </p>
      )}
    </>
  );
}
