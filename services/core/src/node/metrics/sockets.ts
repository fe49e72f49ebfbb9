import type { CoreMetrics } from './metrics.ts';

type ByKind = Readonly<Record<'messages' | 'status', number>>;

/** What the WebSockets of a node come to. */
interface SocketCounts {
  readonly open: ByKind;
  readonly refused: ByKind;
  /** Readers that did not read, or whose place another client took. */
  readonly letGo: ByKind;
  /** Messages that came into force while somebody followed them. */
  readonly messages: number;
  /** How often the log was followed anew, after a failure. */
  readonly restarts: number;
}

const KIND = ['kind'] as const;
const byKind = (counts: ByKind) =>
  Object.entries(counts).map(([kind, value]) => ({ labels: { kind }, value }));

/** @param max of those that are open at once */
export function watchSockets({ own, tell }: CoreMetrics, max: number, read: () => SocketCounts): void {
  own.watch('skerry_sockets_open', 'open WebSockets', () => byKind(read().open), KIND);
  own.watchCounter(
    'skerry_sockets_refused_total',
    'WebSockets that were refused since there was no place for them',
    () => byKind(read().refused),
    KIND,
  );
  own.watchCounter(
    'skerry_sockets_let_go_total',
    'readers of WebSockets that were let go since they did not read, or since a client without one took their place',
    () => byKind(read().letGo),
    KIND,
  );
  own.watchCounter(
    'skerry_sockets_messages_total',
    'messages that were sent to whoever followed them',
    () => read().messages,
  );
  tell(() => {
    const { open, refused, messages, restarts } = read();
    return {
      pyaleph_ws_messages_connections_active: open.messages,
      pyaleph_ws_messages_connections_max: max,
      pyaleph_ws_messages_connections_rejected_total: refused.messages,
      pyaleph_ws_status_connections_active: open.status,
      pyaleph_ws_status_connections_max: max,
      pyaleph_ws_status_connections_rejected_total: refused.status,
      pyaleph_ws_messages_broadcast_total: messages,
      pyaleph_ws_broadcaster_consumer_restarts_total: restarts,
    };
  });
}
