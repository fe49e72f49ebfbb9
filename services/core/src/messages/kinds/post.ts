import {
  CREDIT_POST,
  expensesOf,
  METRICS_POST_TYPES,
  NETWORK_POST,
  ownerOf,
  type PostContent,
  parseAllocationContent,
  parseCoreNodeContent,
  parseDistribution,
  parseExpense,
  parseInstanceStatusContent,
  parseMetricsReport,
  parseNodeContent,
  parseNotice,
  parseProgramRunsContent,
  parseRunnersContent,
  purchasesOf,
  SCORING_CHANNEL,
  type VerifiedMessage,
} from '@skerry/protocol';
import { foldAllocation, foldStatus } from '../../instances/fold.ts';
import {
  type Accepted,
  accept,
  type Decision,
  type Facts,
  forgotten,
  type MessageKind,
  PROCESSED,
  pending,
  rejected,
} from '../accepted.ts';
import { whyNotPermitted } from '../verdict.ts';

type Own = Pick<Accepted, 'subject' | 'changes'>;

/** What services tell each other. By anyone without the standing, such a POST is kept like any other and changes nothing. */
const NETWORK_POSTS: Readonly<
  Record<
    (typeof NETWORK_POST)[keyof typeof NETWORK_POST] | (typeof CREDIT_POST)[keyof typeof CREDIT_POST],
    (message: VerifiedMessage, content: unknown) => Own
  >
> = {
  [NETWORK_POST.node]: (_message, content) => {
    parseNodeContent(content);
    return { subject: null, changes: [] };
  },
  // Read where a token is verified (vrf/published-keys.ts).
  [NETWORK_POST.coreNode]: (_message, content) => {
    parseCoreNodeContent(content);
    return { subject: null, changes: [] };
  },
  // The indexer follows these for itself (indexer/posts.ts).
  [NETWORK_POST.index]: () => ({ subject: null, changes: [] }),
  // Looked up when a program is called (programs/runners.ts).
  [NETWORK_POST.runners]: (_message, content) => {
    parseRunnersContent(content);
    return { subject: null, changes: [] };
  },
  [NETWORK_POST.programRuns]: (_message, content) => ({
    subject: null,
    changes: [{ kind: 'runs', runs: parseProgramRunsContent(content).runs }],
  }),
  [CREDIT_POST.distribution]: (_message, content) => ({
    subject: null,
    changes: [{ kind: 'credit', entries: purchasesOf(parseDistribution(content)) }],
  }),
  [CREDIT_POST.expense]: (_message, content) => ({
    subject: null,
    changes: [{ kind: 'credit', entries: expensesOf(parseExpense(content)) }],
  }),
  [CREDIT_POST.notice]: (_message, content) => {
    const notice = parseNotice(content);
    return { subject: notice.address, changes: [{ kind: 'credit_notice', notice }] };
  },
  [NETWORK_POST.allocation]: (message, raw) => {
    const content = parseAllocationContent(raw);
    const instanceId = content.instance_id;
    return {
      subject: instanceId,
      changes: [{ kind: 'instance', instanceId, fold: foldAllocation(message, content) }],
    };
  },
  [NETWORK_POST.instanceStatus]: (message, raw) => {
    const content = parseInstanceStatusContent(raw);
    const instanceId = content.instance_id;
    return {
      subject: instanceId,
      changes: [{ kind: 'instance', instanceId, fold: foldStatus(message, content) }],
    };
  },
};

const isMetrics = (type: string, channel: string | null | undefined) =>
  channel === SCORING_CHANNEL && (METRICS_POST_TYPES as readonly string[]).includes(type);

const AMEND = 'amend';

function decideAmend(facts: Facts, message: VerifiedMessage, owner: string, ref: string): Decision {
  const original = facts.message(ref);
  if (original && original.type !== 'POST')
    return rejected('AMEND_TARGET_NOT_FOUND', `${ref} is a ${original.type}, not a POST`);
  if (original?.contentType === AMEND) return rejected('AMEND_OF_AMEND', `${ref} is itself an amend`);
  if (original?.status === 'forgotten') return forgotten(`the post ${ref} was forgotten`);
  if (original?.status !== 'processed')
    return pending('AMEND_TARGET_NOT_FOUND', `there is no post ${ref} here yet`);
  const belongs = `the post ${ref} belongs to ${original.owner}`;
  if (original.owner !== owner) return rejected('NOT_PERMITTED', belongs);
  const refusal = whyNotPermitted(facts, original, message);
  return refusal === undefined ? PROCESSED : rejected('NOT_PERMITTED', `${belongs}: ${refusal}`);
}

/** A new content for a post. The latest by time counts, and takes the place of the whole content. */
function amendOf(message: VerifiedMessage, content: PostContent, own: Partial<Accepted>): Accepted {
  const original = content.ref!;
  const owner = ownerOf(message.sender, content);
  return accept(message, {
    ...own,
    subject: original,
    needs: { messages: [original] },
    changes: [{ kind: 'amend', original }],
    decide: (facts, judged) => decideAmend(facts, judged, owner, original),
  });
}

/** POST: a typed note; some types mean something to the network itself. */
export const post: MessageKind<'POST'> = (message, content) => {
  const own = {
    contentType: content.type,
    tags: content.tags ?? [],
  };
  if (content.type === AMEND) return amendOf(message, content, own);
  if (isMetrics(content.type, message.channel)) {
    const report = parseMetricsReport(content.content);
    return accept(message, { ...own, subject: content.ref ?? null, changes: [{ kind: 'metrics', report }] });
  }
  const network = Object.hasOwn(NETWORK_POSTS, content.type)
    ? NETWORK_POSTS[content.type as keyof typeof NETWORK_POSTS]
    : undefined;
  return accept(message, {
    ...own,
    ...(network?.(message, content.content) ?? { subject: content.ref ?? null }),
  });
};
