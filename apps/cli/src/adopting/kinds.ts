import {
  CREDIT_CHANNEL,
  CREDIT_POST,
  METRICS_POST_TYPES,
  NODE_LIST_KEY,
  PRICING_KEY,
  SCORING_CHANNEL,
  VERSIONS_KEY,
} from '@skerry/protocol';

/** What a service has signed that its successor needs. */
export interface AdoptedKind {
  /** The service, for people. */
  readonly name: string;
  readonly channel: string;
  /** Content types of POSTs. */
  readonly posts: readonly string[];
  /** Keys of AGGREGATEs. */
  readonly aggregates: readonly string[];
  /** Whether it stops instances of others. */
  readonly stops: boolean;
  /** The list of a core node's that says whom it trusts. */
  readonly trust: 'credit_publishers' | 'scoring_publishers';
  readonly setting: string;
}

export const ADOPTED = {
  credit: {
    name: 'a credit service',
    channel: CREDIT_CHANNEL,
    posts: Object.values(CREDIT_POST),
    aggregates: [PRICING_KEY],
    stops: true,
    trust: 'credit_publishers',
    setting: 'SKERRY_CORE_CREDIT_PUBLISHERS',
  },
  // Scores are computed again from what was measured.
  monitor: {
    name: 'a monitor',
    channel: SCORING_CHANNEL,
    posts: METRICS_POST_TYPES,
    aggregates: [VERSIONS_KEY, NODE_LIST_KEY],
    stops: false,
    trust: 'scoring_publishers',
    setting: 'SKERRY_CORE_SCORING_PUBLISHERS',
  },
} as const satisfies Readonly<Record<string, AdoptedKind>>;

export type AdoptedService = keyof typeof ADOPTED;
