import { useEffect, useRef, useState } from 'preact/hooks';
import { useLive, wantRows } from '../data/live.ts';
import { messageLink } from '../data/network.ts';
import { zone } from '../data/settings.ts';
import { type Check, checkedCount, useChecks } from '../data/trust/checks.ts';
import { explained } from '../data/trust/explained.ts';
import { clock, count, short } from '../pure/format.ts';
import type { LiveFilter, LiveMessage, LiveState } from '../workers/live.ts';
import { Badge, MarkButton, Safe } from './basic.tsx';
import { Empty } from './states.tsx';

/** Rows have one height, so that those that are seen are known without asking the browser. */
const ROW_PX = 34;
const SPARE_ROWS = 6;

const timeOf = (atMs: number) => clock(atMs, zone.value).split(' ')[1];

interface RowProps {
  readonly row: LiveMessage;
  readonly check: Check;
  readonly top: number;
}

const Row = ({ row, check, top }: RowProps) => (
  <li style={{ transform: `translateY(${top}px)` }} title={check.failure}>
    <MarkButton kind={check.mark} number={row.number} />
    <a href={messageLink(row.item_hash)}>
      <span class="number muted">{timeOf(row.atMs)}</span>
      <span class="type">
        <Safe text={row.content_type ?? row.type} limit={32} />
      </span>
      <code>{short(row.item_hash)}</code>
      <code class="muted sender">{short(row.sender)}</code>
      <span class="muted channel">{row.channel === null ? '' : <Safe text={row.channel} limit={32} />}</span>
    </a>
  </li>
);

interface RowsProps {
  readonly rows: readonly LiveMessage[];
  readonly checkOf: (row: LiveMessage) => Check;
  readonly height: number;
  /** The number of the first row. */
  readonly top: number;
}

function Rows({ rows, checkOf, height, top }: RowsProps) {
  /** One for all rows: they come and go. */
  const open = ({ target }: Event) => {
    const pressed = (target as Element).closest<HTMLElement>('[data-number]')?.dataset.number;
    const row = rows.find(({ number }) => String(number) === pressed);
    if (!row) return;
    const { mark: kind, failure: why } = checkOf(row);
    explained.value = { kind, of: 'message', message: row.item_hash, why };
  };
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: what is pressed are buttons, and a key presses them as well
    <ul style={{ height: `${height}px` }} onClick={open}>
      {rows.map((row) => (
        <Row key={row.number} row={row} check={checkOf(row)} top={(top - row.number) * ROW_PX} />
      ))}
    </ul>
  );
}

interface BarProps {
  readonly state: LiveState;
  readonly isHeld: boolean;
  readonly missed: number;
  readonly onFollow: () => void;
}

function Bar({ state, isHeld, missed, onFollow }: BarProps) {
  const { status, why, perSecond, lagMs } = state;
  return (
    <p class="actions" role="status">
      {status === 'live' ? (
        <Badge tone={isHeld ? 'warn' : 'good'}>{isHeld ? 'held' : 'live'}</Badge>
      ) : (
        <Badge tone={status === 'lost' ? 'bad' : 'plain'}>
          {status === 'lost' ? 'not live' : 'connecting'}
        </Badge>
      )}
      <span class="number">{count(perSecond.at(-1) ?? 0)} a second</span>
      <span class="muted number">{count(checkedCount.value)} lines checked</span>
      {lagMs !== null && lagMs > 10_000 ? (
        <span class="muted">{Math.round(lagMs / 1_000)} s behind</span>
      ) : null}
      {status === 'lost' ? <span class="muted">{why}; it is taken up again where it ended</span> : null}
      {isHeld ? (
        <button type="button" class="plain" onClick={onFollow}>
          {missed === 0 ? 'Follow again' : `Show ${count(missed)} new`}
        </button>
      ) : null}
    </p>
  );
}

/**
 * Messages as they come, however many: the page holds the rows that are seen. The list is held while the reader scrolls in it,
 * points at it, goes through it with the keyboard, or reads what a mark in it means.
 */
export function LiveList({ filter }: { readonly filter: LiveFilter }) {
  const state = useLive();
  const checkOf = useChecks(state.rows);
  const box = useRef<HTMLDivElement>(null);
  const [scrolled, setScrolled] = useState(0);
  const [held, setHeld] = useState<number | null>(null);
  const [height, setHeight] = useState(600);
  const top = Math.min(held ?? state.total - 1, state.total - 1);
  const hidden = Math.floor(scrolled / ROW_PX);
  const size = Math.ceil(height / ROW_PX) + SPARE_ROWS;
  const from = held === null ? null : held - hidden;
  const wish = JSON.stringify([from, size, filter]);
  useEffect(() => wantRows({ from, size, filter }), [wish]);
  useEffect(() => () => wantRows(), []);
  useEffect(() => setHeight(box.current?.clientHeight ?? 600), []);
  const hold = () => setHeld((before) => before ?? (state.total === 0 ? null : state.total - 1));
  const release = () => {
    if (scrolled === 0 && !explained.value) setHeld(null);
  };
  const follow = () => {
    box.current?.scrollTo(0, 0);
    setHeld(null);
  };
  const kept = Math.max(0, top - state.first + 1);
  return (
    <>
      <Bar state={state} isHeld={held !== null} missed={state.total - 1 - top} onFollow={follow} />
      <section
        class="live"
        ref={box}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is reached with the keyboard
        tabIndex={0}
        aria-label="messages as they come"
        onPointerEnter={hold}
        onPointerLeave={release}
        onFocusIn={hold}
        onFocusOut={({ currentTarget, relatedTarget }) => {
          if (!currentTarget.contains(relatedTarget as Node | null)) release();
        }}
        onScroll={({ currentTarget }) => {
          setScrolled(currentTarget.scrollTop);
          if (currentTarget.scrollTop > 0) hold();
        }}
      >
        {state.total === 0 ? (
          <Empty title={state.status === 'live' ? 'Nothing yet.' : 'Not connected.'}>
            <p class="muted">Messages appear here as the core node takes them in.</p>
          </Empty>
        ) : (
          <Rows rows={state.rows} height={kept * ROW_PX} top={top} checkOf={checkOf} />
        )}
      </section>
    </>
  );
}
