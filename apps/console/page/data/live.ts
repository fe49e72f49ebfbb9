import { type Signal, signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { LiveState, LiveWish } from '../workers/live.ts';
import { readCursor } from './answers.ts';
import { ask } from './ask.ts';
import { failureOf } from './failure.ts';
import { useNetwork } from './network.ts';
import { type Live, startLive } from './workers.ts';

/** One stream of events for the whole page: it goes on while the reader looks elsewhere in it. */

const RETRY_MS = 5_000;

const IDLE: LiveState = {
  status: 'connecting',
  why: null,
  total: 0,
  perSecond: [],
  lagMs: null,
  rows: [],
  first: 0,
  changes: [],
};

const live = signal<LiveState>(IDLE);
let running: { readonly url: string; readonly cursor: string; readonly worker: Live } | undefined;
let starting = false;
type Rows = Pick<LiveWish, 'from' | 'size' | 'filter'>;
const NO_ROWS: Rows = { from: null, size: 0, filter: { type: '', channel: '', sender: '' } };
let wanted = NO_ROWS;
let machine = '';

const send = () => {
  if (running) running.worker.wish({ url: running.url, cursor: running.cursor, ...wanted, machine });
};

/** Rows that are wanted from now on; undefined: none. */
export function wantRows(rows: Rows = NO_ROWS): void {
  wanted = rows;
  send();
}

/** The machine whose changes are wanted from now on; empty: none. */
export function wantChanges(id: string): void {
  machine = id;
  send();
}

async function start(url: string): Promise<void> {
  if (running || starting) return;
  starting = true;
  try {
    // A cursor of its own: a stream that breaks before its first event is taken up again without a gap.
    const asked = `${url}/api/v0/events?cursor=latest&limit=1`;
    const { next_cursor: cursor } = await ask(asked, readCursor, new AbortController().signal);
    running = {
      url,
      cursor,
      worker: startLive((state) => {
        live.value = state;
      }),
    };
    send();
  } catch (error) {
    live.value = { ...live.value, status: 'lost', why: failureOf(error).message };
    setTimeout(() => void start(url), RETRY_MS);
  } finally {
    starting = false;
  }
}

/** The stream itself, for whoever is not drawn again with all that comes. */
export function useStream(): Signal<LiveState> {
  const { coreUrl } = useNetwork();
  useEffect(() => void start(coreUrl), [coreUrl]);
  return live;
}

/** What happens in the network now. */
export const useLive = (): LiveState => useStream().value;
