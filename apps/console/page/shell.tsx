import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { identity, question } from './data/identity.ts';
import { CORE_URL, type Network } from './data/network.ts';
import { route } from './data/place.ts';
import { THEMES, theme, ZONES, zone } from './data/settings.ts';
import { explained } from './data/trust/explained.ts';
import { MARK_KINDS } from './data/trust/mark-kinds.ts';
import { Mark, Safe } from './parts/basic.tsx';
import { Lazy } from './parts/lazy.tsx';
import { short } from './pure/format.ts';
import { linkTo } from './pure/route.ts';

interface Place {
  readonly part: string;
  readonly title: string;
}

function Navigation({ places }: { readonly places: readonly Place[] }) {
  const [here = ''] = route.value.parts;
  const list = useRef<HTMLElement>(null);
  // Where the list is wider than the window, the reader sees where they are in it.
  useEffect(() => {
    const current = list.current?.querySelector<HTMLElement>('[aria-current]');
    if (current) list.current!.scrollLeft = current.offsetLeft - list.current!.clientWidth / 3;
  }, [here]);
  return (
    <nav aria-label="views" ref={list}>
      {places.map(({ part, title }) => (
        <a
          key={part}
          href={linkTo(part === '' ? [] : [part])}
          {...(here === part ? { 'aria-current': 'page' as const } : {})}
        >
          {title}
        </a>
      ))}
    </nav>
  );
}

const TITLES = {
  system: 'as the system',
  light: 'light',
  dark: 'dark',
  local: 'local time',
  utc: 'UTC',
} as const;

function Choice<T extends keyof typeof TITLES>(props: {
  readonly label: string;
  readonly all: readonly T[];
  readonly of: { value: T };
}) {
  return (
    <label class="choice">
      <span>{props.label}</span>
      <select
        value={props.of.value}
        onChange={({ currentTarget }) => {
          props.of.value = props.all.find((one) => one === currentTarget.value) ?? props.of.value;
        }}
      >
        {props.all.map((one) => (
          <option key={one} value={one}>
            {TITLES[one]}
          </option>
        ))}
      </select>
    </label>
  );
}

const BUILD = document.querySelector<HTMLMetaElement>('meta[name=build]')?.content ?? '';

const Footer = () => (
  <footer>
    <p class="legend">
      {MARK_KINDS.map((kind) => (
        <Mark
          key={kind}
          kind={kind}
          label={
            {
              proven: 'proven in this tab',
              agreed: 'nodes agree',
              said: "one node's word",
              waiting: 'being checked',
              wrong: 'contradicted here',
            }[kind]
          }
        />
      ))}
      <a href={linkTo(['trust'])}>what they prove</a>
    </p>
    <p class="choices">
      <Choice label="Colours" all={THEMES} of={theme} />
      <Choice label="Times" all={ZONES} of={zone} />
    </p>
    <p class="muted">
      Build <code title={BUILD}>{BUILD.slice(0, 12)}</code>. Nothing is loaded from elsewhere, nothing is sent
      but questions to this network and what you sign. <a href={`${CORE_URL}/api/v0/docs`}>API</a>
    </p>
  </footer>
);

/** Who signs what the reader does, if anybody. */
const Me = () => {
  const me = identity.value;
  return (
    <a class="me" href={linkTo(['keys'])} title={me?.address ?? 'choose a key'}>
      {me ? (
        <>
          <span class="lamp" aria-hidden="true" /> <code>{short(me.address, 6, 4)}</code>
        </>
      ) : (
        'No key'
      )}
    </a>
  );
};

/** What is around every view. */
export function Shell(props: {
  readonly network: Network;
  readonly places: readonly Place[];
  readonly children: ComponentChildren;
}) {
  const { info, coreUrl } = props.network;
  return (
    <>
      <button type="button" class="skip" onClick={() => document.getElementById('main')?.focus()}>
        Skip to the content
      </button>
      <header class="top">
        <a class="brand" href={linkTo([])}>
          <svg viewBox="0 0 32 32" aria-hidden="true">
            <rect width="32" height="32" rx="7" />
            <path d="M6 22c2-5 4-8 6-8 2.5 0 3 4 5 4 2 0 2.5-8 5-8 2 0 3 6 4 12z" />
          </svg>
          <span>Skerry</span>
        </a>
        <Navigation places={props.places} />
        <Me />
        <span class="network" title={coreUrl}>
          {info ? <Safe text={info.name} limit={24} /> : null}
          <span class="muted">{coreUrl.replace(/^https?:\/\//, '')}</span>
        </span>
      </header>
      <main id="main" tabIndex={-1}>
        {CORE_URL === location.origin ? null : (
          <p class="stale elsewhere">
            This shows the network of <b>{CORE_URL}</b>, which the address of the page names. It is not the
            node that serves the page.
          </p>
        )}
        {props.children}
      </main>
      <Footer />
      {explained.value ? (
        <Lazy load={() => import('./views/later.tsx')} show={({ MarkDialog }) => <MarkDialog />} />
      ) : null}
      {question.value ? (
        <Lazy load={() => import('./views/later.tsx')} show={({ SignDialog }) => <SignDialog />} />
      ) : null}
    </>
  );
}
