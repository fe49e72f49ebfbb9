import { createParser } from '../schema.ts';
import { type Static, Type } from '../type.ts';

const DAY = 86_400;
const strict = { additionalProperties: false } as const;
const PERIOD_MAX_SECONDS = 10 * 366 * DAY;
const seconds = (fallback: number, description: string) =>
  Type.Integer({ minimum: 1, maximum: PERIOD_MAX_SECONDS, default: fallback, description });

/** What a scoring may differ in. Published with the scores, so that anybody computes with the same. */
export const ScoringSettings = Type.Object(
  {
    hour_seconds: seconds(3_600, 'how long an hour is; shorter on a devnet'),
    period_seconds: seconds(730 * DAY, 'how far back messages count'),
    percentile: Type.Integer({ minimum: 0, maximum: 100, default: 67 }),
    grace_days: Type.Integer({ minimum: 0, maximum: 3_650, default: 14 }),
    software: Type.Object(
      {
        core: Type.String({ minLength: 1, maxLength: 64, default: 'skerry-core' }),
        compute: Type.String({ minLength: 1, maxLength: 64, default: 'skerry-compute' }),
      },
      strict,
    ),
    skip_without_asn: Type.Boolean({ description: 'whether a node of no known network gets no score' }),
    ip_window_seconds: seconds(365 * DAY, 'how far back changes of address are counted'),
    ip_max_changes: Type.Integer({ minimum: 1, maximum: 1_000_000, default: 2 }),
    ip_enforced: Type.Boolean(),
    duplicate_ip_enforced: Type.Boolean(),
    proved_places: Type.Optional(
      Type.Boolean({
        description:
          'whether of nodes at one address the one that proved it within dead_window_seconds keeps it; scores from before proofs do not say',
      }),
    ),
    only_answered: Type.Optional(
      Type.Boolean({
        description:
          'whether a record that says nothing of its node but that it did not answer is left out of the nodes behind decentralization; older scores do not say',
      }),
    ),
    dead_window_seconds: seconds(DAY, 'how long a node may be silent'),
    dead_enforced: Type.Boolean(),
  },
  strict,
);
export type ScoringSettings = Static<typeof ScoringSettings>;

export const DEFAULT_SCORING_SETTINGS: ScoringSettings = {
  hour_seconds: 3_600,
  period_seconds: 730 * DAY,
  percentile: 67,
  grace_days: 14,
  software: { core: 'skerry-core', compute: 'skerry-compute' },
  skip_without_asn: true,
  ip_window_seconds: 365 * DAY,
  ip_max_changes: 2,
  ip_enforced: false,
  duplicate_ip_enforced: true,
  proved_places: true,
  only_answered: true,
  dead_window_seconds: DAY,
  dead_enforced: false,
};

export const parseScoringSettings = createParser(ScoringSettings, 'settings');
