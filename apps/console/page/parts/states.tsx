import type { ComponentChildren } from 'preact';
import type { Failure } from '../data/failure.ts';
import type { Resource } from '../data/resource.ts';
import { Time } from './basic.tsx';

/** What is shown while there is nothing to show yet. */
export const Loading = ({ lines = 3 }: { readonly lines?: number }) => (
  <div class="loading" role="status" aria-label="loading">
    {Array.from({ length: lines }, (_, at) => (
      <span key={at} />
    ))}
  </div>
);

export const Empty = (props: { readonly title: string; readonly children?: ComponentChildren }) => (
  <div class="empty">
    <p class="empty-title">{props.title}</p>
    {props.children}
  </div>
);

export const Failed = ({ failure }: { readonly failure: Failure }) => (
  <div class="failed" role="alert">
    <p>
      {failure.message} <code>{failure.code}</code>
    </p>
    {failure.remedy === undefined ? null : <p class="muted">{failure.remedy}</p>}
  </div>
);

/** A value, or why there is none; beside an old value, why it is old. */
export function Loaded<T>(props: {
  readonly from: Resource<T>;
  readonly lines?: number;
  readonly children: (value: T) => ComponentChildren;
}) {
  const { value, failure, atMs } = props.from;
  if (value === undefined)
    return failure ? <Failed failure={failure} /> : <Loading lines={props.lines ?? 3} />;
  return (
    <>
      {failure ? (
        <p class="stale" role="status">
          <span>
            As of <Time ms={atMs} />: {failure.message} <code>{failure.code}</code>
          </span>
        </p>
      ) : null}
      {props.children(value)}
    </>
  );
}

/** What is shown where the core node does not say where a service is. */
export const Unknown = ({ service }: { readonly service: string }) => (
  <Empty title={`This core node does not say where its ${service} is.`}>
    <p class="muted">
      Its operator can tell clients, with the setting <code>SKERRY_CORE_SERVICES</code>.
    </p>
  </Empty>
);
