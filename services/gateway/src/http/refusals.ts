import type { RefusalsView } from '@skerry/protocol/api/gateway-refusals';
import type { RefusedLately } from '../refusals/refusals.ts';
import type { Reasons } from '../refusals/tally.ts';

const reasonsView = (reasons: Reasons) =>
  [...reasons]
    .map(([reason, count]) => ({ reason, count }))
    .sort((one, other) => other.count - one.count || (one.reason < other.reason ? -1 : 1));

/** What an operator is told of who was refused lately. */
export const refusalsView = ({ since, accounts, others }: RefusedLately): RefusalsView => ({
  since,
  networks: accounts.map(({ network, count, reasons }) => ({
    network,
    count,
    reasons: reasonsView(reasons),
  })),
  others: { count: others.count, reasons: reasonsView(others.reasons) },
});
