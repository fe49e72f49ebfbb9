import type { ComponentChildren } from 'preact';

/** What was typed into a form, by the names of its fields. */
export type Typed = Readonly<Record<string, string>>;

const typedIn = (form: HTMLFormElement): Typed =>
  Object.fromEntries(
    [...new FormData(form)].flatMap(([name, value]) => (typeof value === 'string' ? [[name, value]] : [])),
  );

/** Fields and a button; Enter is the button. */
export const Form = (props: {
  readonly label: string;
  readonly button: string;
  readonly isBusy?: boolean;
  readonly onSend: (typed: Typed) => void;
  readonly children: ComponentChildren;
}) => (
  <form
    class="fields"
    aria-label={props.label}
    onSubmit={(event) => {
      event.preventDefault();
      props.onSend(typedIn(event.currentTarget));
    }}
  >
    {props.children}
    <button type="submit" class="primary" disabled={props.isBusy ?? false}>
      {props.button}
    </button>
  </form>
);

export interface FieldProps {
  readonly name: string;
  readonly label: string;
  readonly value?: string | undefined;
  readonly placeholder?: string;
  readonly isNumber?: boolean;
  readonly isRequired?: boolean;
  readonly isWide?: boolean;
  readonly limit?: number;
}

export const Field = ({
  name,
  label,
  value,
  placeholder,
  isNumber,
  isRequired,
  isWide,
  limit,
}: FieldProps) => (
  <label class={isWide ? 'wide-field' : isNumber ? 'number-field' : ''}>
    {label}
    <input
      name={name}
      defaultValue={value ?? ''}
      autocomplete="off"
      spellcheck={false}
      {...(isNumber ? { inputMode: 'numeric' as const, pattern: '-?[0-9]+' } : {})}
      {...(placeholder === undefined ? {} : { placeholder })}
      {...(limit === undefined ? {} : { maxLength: limit })}
      required={isRequired ?? false}
    />
  </label>
);
