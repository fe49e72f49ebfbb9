/** What became of connections on the TLS listener, since the start. `stalled` were relayed, too, and then cut: they held too much that one side did not take. */
export const TLS_OUTCOMES = [
  'relayed',
  'unknown_name',
  'no_server_name',
  'not_tls',
  'malformed',
  'hello_timeout',
  'crowded_out',
  'gone',
  'connect_failed',
  'too_many',
  'client_limit',
  'instance_limit',
  'stalled',
] as const;
export type TlsOutcome = (typeof TLS_OUTCOMES)[number];

/** Outcomes of connections that the gateway served, or that failed on the way to the instance or at the client's own hand. */
const TLS_SERVED: readonly TlsOutcome[] = ['relayed', 'gone', 'connect_failed'];
/** The others: the client was refused. */
export const isTlsRefusal = (outcome: TlsOutcome): boolean => !TLS_SERVED.includes(outcome);

export interface Figure {
  /** Under which /metrics tells it, behind `skerry_gateway_`. */
  readonly metric: string;
  readonly type: 'counter' | 'gauge';
  readonly help: string;
  readonly labels?: Readonly<Record<string, string>>;
}

const BYTES = {
  metric: 'tls_bytes_total',
  type: 'counter',
  help: 'Bytes of TLS connections that have ended.',
} as const;

/**
 * What else is counted of TLS connections. Both data planes count each of these; the memory that the native one counts in
 * (native/layout.ts) and what /metrics tells follow from the list.
 */
export const TLS_FIGURES = {
  open: { metric: 'tls_open_connections', type: 'gauge', help: 'TLS connections that are open.' },
  bytesToInstances: { ...BYTES, labels: { direction: 'to_instances' } },
  bytesToClients: { ...BYTES, labels: { direction: 'to_clients' } },
  yielded: {
    metric: 'tls_yielded_connections_total',
    type: 'counter',
    help: 'TLS connections that were cut where all places were taken, for a client that had none; those without an instance are crowded_out too.',
  },
  stalledBytes: {
    metric: 'tls_stalled_bytes',
    type: 'gauge',
    help: 'Memory of the kernel that holds what slow receivers of TLS connections have not taken.',
  },
} as const satisfies Record<string, Figure>;
export type TlsFigure = keyof typeof TLS_FIGURES;

export const TLS_FIGURE_NAMES = Object.keys(TLS_FIGURES) as TlsFigure[];

export interface TlsCounts {
  readonly figures: Readonly<Record<TlsFigure, number>>;
  readonly outcomes: Readonly<Record<TlsOutcome, number>>;
}

/** What became of QUIC connections, and of datagrams that belong to none, since the start. */
export const QUIC_OUTCOMES = [
  'forwarded',
  'unknown_name',
  'no_server_name',
  'malformed',
  'hello_timeout',
  'crowded_out',
  'connect_failed',
  'unanswered',
  'too_many',
  'client_limit',
  'instance_limit',
  'instance_silent',
  'proxy_protocol',
  'moved',
  'unknown_version',
  'stray',
] as const;
export type QuicOutcome = (typeof QUIC_OUTCOMES)[number];

const QUIC_SERVED: readonly QuicOutcome[] = ['forwarded', 'moved', 'connect_failed', 'unanswered'];
export const isQuicRefusal = (outcome: QuicOutcome): boolean => !QUIC_SERVED.includes(outcome);

const QUIC_BYTES = {
  metric: 'quic_bytes_total',
  type: 'counter',
  help: 'Bytes of QUIC datagrams, by where they went; held_back went nowhere, since the client had not shown that it is there.',
} as const;

const QUIC_DROPS = {
  metric: 'quic_dropped_datagrams_total',
  type: 'counter',
  help: 'QUIC datagrams that the kernel dropped before the gateway read them, by where they went; those that it had joined count as one.',
} as const;

/** What else is counted of QUIC, by the native plane alone. */
export const QUIC_FIGURES = {
  quicOpen: { metric: 'quic_open_flows', type: 'gauge', help: 'QUIC connections that are followed.' },
  quicBytesToInstances: { ...QUIC_BYTES, labels: { direction: 'to_instances' } },
  quicBytesToClients: { ...QUIC_BYTES, labels: { direction: 'to_clients' } },
  quicHeldBack: { ...QUIC_BYTES, labels: { direction: 'held_back' } },
  quicDroppedToInstances: { ...QUIC_DROPS, labels: { direction: 'to_instances' } },
  quicDroppedToClients: { ...QUIC_DROPS, labels: { direction: 'to_clients' } },
  quicYielded: {
    metric: 'quic_yielded_flows_total',
    type: 'counter',
    help: 'QUIC connections that ended where all places were taken, for a client that had none; those without an answer are crowded_out too.',
  },
} as const satisfies Record<string, Figure>;
export type QuicFigure = keyof typeof QUIC_FIGURES;

export const QUIC_FIGURE_NAMES = Object.keys(QUIC_FIGURES) as QuicFigure[];

export interface QuicCounts {
  readonly figures: Readonly<Record<QuicFigure, number>>;
  readonly outcomes: Readonly<Record<QuicOutcome, number>>;
}

const zeros = <Name extends string>(names: readonly Name[]) =>
  Object.fromEntries(names.map((name) => [name, 0])) as Record<Name, number>;

/** To count in. */
export const newTlsCounts = () => ({ figures: zeros(TLS_FIGURE_NAMES), outcomes: zeros(TLS_OUTCOMES) });
export const noQuicCounts = (): QuicCounts => ({
  figures: zeros(QUIC_FIGURE_NAMES),
  outcomes: zeros(QUIC_OUTCOMES),
});
export type TlsCounters = ReturnType<typeof newTlsCounts>;
