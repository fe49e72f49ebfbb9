import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { now } from '../data/clock.ts';
import { zone } from '../data/settings.ts';
import { type Explained, explained } from '../data/trust/explained.ts';
import { MARKS, type MarkKind } from '../data/trust/mark-kinds.ts';
import { clock, pieces, relative, short } from '../pure/format.ts';

export type Tone = 'good' | 'warn' | 'bad' | 'plain' | 'accent';

/** A part of a page under a heading. */
export function Panel(props: {
  readonly title: string;
  readonly aside?: ComponentChildren;
  readonly wide?: boolean;
  readonly children: ComponentChildren;
}) {
  return (
    <section class={props.wide ? 'panel wide' : 'panel'}>
      <header>
        <h2>{props.title}</h2>
        {props.aside === undefined ? null : <div class="aside">{props.aside}</div>}
      </header>
      {props.children}
    </section>
  );
}

/** One number that matters, and what it is. */
export function Stat(props: {
  readonly label: string;
  readonly value: ComponentChildren;
  readonly note?: ComponentChildren;
  readonly href?: string;
  readonly children?: ComponentChildren;
}) {
  const inside = (
    <>
      <span class="label">{props.label}</span>
      <span class="value">{props.value}</span>
      <span class="note">{props.note ?? '\u00a0'}</span>
      {props.children}
    </>
  );
  return props.href === undefined ? (
    <div class="stat">{inside}</div>
  ) : (
    <a class="stat" href={props.href}>
      {inside}
    </a>
  );
}

export const Badge = (props: { readonly tone: Tone; readonly children: ComponentChildren }) => (
  <span class={`badge ${props.tone}`}>{props.children}</span>
);

/** How much of something is taken. */
export function Meter(props: {
  readonly label: string;
  readonly taken: number;
  readonly total: number;
  readonly text: string;
}) {
  const part = props.total <= 0 ? 0 : Math.min(1, Math.max(0, props.taken / props.total));
  const tone = part > 0.95 ? 'bad' : part > 0.8 ? 'warn' : 'accent';
  return (
    <div class="meter">
      <div class="meter-text">
        <span>{props.label}</span>
        <span class="muted">{props.text}</span>
      </div>
      <div class="track" aria-hidden="true">
        <div class={`fill ${tone}`} style={{ width: `${part * 100}%` }} />
      </div>
    </div>
  );
}

/** A moment, as an age; its date is told on the way over it. */
export function Time({ ms }: { readonly ms: number | null | undefined }) {
  if (ms === null || ms === undefined || !Number.isFinite(ms) || Number.isNaN(new Date(ms).getTime()))
    return <span class="muted">unknown</span>;
  return (
    <time dateTime={new Date(ms).toISOString()} title={clock(ms, zone.value)}>
      {relative(ms, now.value)}
    </time>
  );
}

/** A moment that is to come, told as one; when it has passed, what is true then. */
export function Until(props: { readonly ms: number; readonly before: string; readonly passed: string }) {
  const { ms, before, passed } = props;
  return ms <= now.value ? (
    <span>{passed}</span>
  ) : (
    <span>
      {before} <Time ms={ms} />
    </span>
  );
}

/** A moment as a date. */
export const DateTime = ({ ms }: { readonly ms: number }) => (
  <time
    dateTime={Number.isNaN(new Date(ms).getTime()) ? '' : new Date(ms).toISOString()}
    title={relative(ms, now.value)}
  >
    {clock(ms, zone.value)}
  </time>
);

/** A stranger's text: it cannot reorder, hide or imitate. */
export const Safe = ({
  text,
  limit,
  keepsLines,
}: {
  readonly text: string;
  readonly limit?: number;
  readonly keepsLines?: boolean;
}) => (
  <bdi class="safe">
    {pieces(text, limit, keepsLines).map((piece) =>
      piece.isTrick ? (
        <span class="trick" title="a character that does not show, or changes how others show">
          {piece.text}
        </span>
      ) : (
        piece.text
      ),
    )}
  </bdi>
);

const SHOWN_MS = 1_500;

/** A hash, short, with a button that copies the whole. */
export function Hash(props: { readonly value: string; readonly href?: string }) {
  const [isCopied, setCopied] = useState(false);
  const shown = <code title={props.value}>{short(props.value)}</code>;
  const copy = async () => {
    await navigator.clipboard?.writeText(props.value);
    setCopied(true);
    setTimeout(() => setCopied(false), SHOWN_MS);
  };
  return (
    <span class="hash">
      {props.href === undefined ? shown : <a href={props.href}>{shown}</a>}
      <button type="button" class="copy" aria-label={`copy ${props.value}`} onClick={() => void copy()}>
        {isCopied ? 'copied' : 'copy'}
      </button>
    </span>
  );
}

interface MarkProps {
  readonly kind: MarkKind;
  readonly label?: string | undefined;
}

const Sign = ({ kind, label }: MarkProps) => {
  const { sign, meaning } = MARKS[kind];
  return (
    <>
      <span aria-hidden="true">{sign}</span>{' '}
      <span class={label === undefined ? 'unseen' : ''}>{label ?? meaning}</span>
    </>
  );
};

/** How sure the page is of something, where that is explained. Elsewhere a mark opens: `ProofMark`. */
export function Mark({ kind, label }: MarkProps) {
  const { tone, meaning } = MARKS[kind];
  return (
    <span class={`mark ${tone}`} title={meaning} data-mark={kind}>
      <Sign kind={kind} label={label} />
    </span>
  );
}

/** A mark that is pressed. @param props.number of the line in a list that hears what is pressed in it */
export function MarkButton(props: MarkProps & { readonly number?: number; readonly onClick?: () => void }) {
  const { kind, label, number, onClick } = props;
  const { tone, meaning } = MARKS[kind];
  return (
    <button
      type="button"
      class={`mark opens ${tone}`}
      title={`${meaning}: what that follows from, and what it leaves open`}
      aria-haspopup="dialog"
      data-mark={kind}
      data-number={number}
      {...(onClick === undefined ? {} : { onClick })}
    >
      <Sign kind={kind} label={label} />
    </button>
  );
}

/** How sure the page is of what stands beside it. Pressed, it tells what that follows from, and what it leaves open. */
export function ProofMark({ label, ...mark }: Explained & { readonly label?: string }) {
  const open = () => {
    explained.value = mark;
  };
  return <MarkButton kind={mark.kind} label={label} onClick={open} />;
}

/** Names and values, one below the other. */
export const Facts = (props: { readonly rows: readonly (readonly [string, ComponentChildren])[] }) => (
  <dl class="facts">
    {props.rows.map(([name, value]) => (
      <div key={name}>
        <dt>{name}</dt>
        <dd>{value}</dd>
      </div>
    ))}
  </dl>
);
