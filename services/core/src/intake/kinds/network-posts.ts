import {
  CREDIT_POST,
  expensesOf,
  foldAllocation,
  foldStatus,
  NETWORK_POST,
  parseAllocationContent,
  parseCoreNodeContent,
  parseDistribution,
  parseExpense,
  parseInstanceStatusContent,
  parseNodeContent,
  parseNotice,
  parseProgramRunsContent,
  parseRunnersContent,
  purchasesOf,
  type VerifiedMessage,
} from '@skerry/protocol';
import type { Own } from '../accepted.ts';
import { creditEffect, noticeEffect } from '../effects/credits.ts';
import { instanceEffect } from '../effects/instances.ts';
import { runsEffect } from '../effects/runs.ts';

export const NETWORK_EFFECTS = [instanceEffect, runsEffect, creditEffect, noticeEffect] as const;

type OwnOfPost = Own<(typeof NETWORK_EFFECTS)[number]>;
type NetworkPost = (message: VerifiedMessage, content: unknown) => OwnOfPost;
type NetworkType =
  | (typeof NETWORK_POST)[keyof typeof NETWORK_POST]
  | (typeof CREDIT_POST)[keyof typeof CREDIT_POST];

/** It is looked up where it is wanted: its content has to be right, and that is all. */
const isOnlyRead =
  (parse: (content: unknown) => unknown): NetworkPost =>
  (_message, content) => {
    parse(content);
    return {};
  };

/** What services tell each other. By anyone without the standing, such a POST is kept like any other and changes nothing. */
const NETWORK_POSTS: Readonly<Record<NetworkType, NetworkPost>> = {
  [NETWORK_POST.node]: isOnlyRead(parseNodeContent),
  // Where a token is verified (node/vrf/published-keys.ts).
  [NETWORK_POST.coreNode]: isOnlyRead(parseCoreNodeContent),
  // The indexer follows these for itself (chains/index-posts.ts).
  [NETWORK_POST.index]: () => ({}),
  // When a program is called (state/programs/runners.ts).
  [NETWORK_POST.runners]: isOnlyRead(parseRunnersContent),
  [NETWORK_POST.programRuns]: (_message, content) => ({
    changes: [runsEffect.change(parseProgramRunsContent(content).runs)],
  }),
  [CREDIT_POST.distribution]: (_message, content) => ({
    changes: [creditEffect.change(purchasesOf(parseDistribution(content)))],
  }),
  [CREDIT_POST.expense]: (_message, content) => ({
    changes: [creditEffect.change(expensesOf(parseExpense(content)))],
  }),
  [CREDIT_POST.notice]: (_message, content) => {
    const notice = parseNotice(content);
    return { subject: notice.address, changes: [noticeEffect.change(notice)] };
  },
  [NETWORK_POST.allocation]: (message, raw) => {
    const content = parseAllocationContent(raw);
    const instanceId = content.instance_id;
    const fold = foldAllocation(message, content);
    return { subject: instanceId, changes: [instanceEffect.change({ instanceId, fold })] };
  },
  [NETWORK_POST.instanceStatus]: (message, raw) => {
    const content = parseInstanceStatusContent(raw);
    const instanceId = content.instance_id;
    const fold = foldStatus(message, content);
    return { subject: instanceId, changes: [instanceEffect.change({ instanceId, fold })] };
  },
};

/** What a POST of this type means to the network itself; undefined: nothing. */
export const findNetworkPost = (type: string): NetworkPost | undefined =>
  Object.hasOwn(NETWORK_POSTS, type) ? NETWORK_POSTS[type as NetworkType] : undefined;
