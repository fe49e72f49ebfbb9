import { readNewestMetrics, readPublishedScores } from '@skerry/client';
import { AppError, isInstanceAddress, type NodeRecord } from '@skerry/protocol';
import { isUnchecked } from '../pure/trust/unchecked.ts';
import { type Allocation, readAllocations } from './machine/allocations.ts';

/** One thing that the core node says, beside what was signed. */
export interface JudgedFact {
  readonly kind: 'proven' | 'said' | 'wrong';
  /** Who signed it, or what is wrong with it. */
  readonly why: string;
  /** The message that says it. */
  readonly itemHash: string | null;
}

/** Codes by which a failure contradicts nobody, beside those that are tried again: another kind of node may answer. */
export const isOpen = (error: AppError) => isUnchecked(error) || error.code === 'UNEXPECTED_ANSWER';

/**
 * What a failure says of the core node: where something could be asked, it contradicts it. What could not be asked proves nothing, either
 * way: that is thrown, for whoever asked to try again.
 */
export function judgeFailure(error: unknown, itemHash: string | null): JudgedFact {
  if (!(error instanceof AppError) || isOpen(error)) throw error;
  return { kind: 'wrong', why: `${error.message} (${error.code})`, itemHash };
}

interface AddressQuestion {
  readonly coreUrl: string;
  readonly id: string;
  readonly ipv6: string;
  /** Whose allocations count. */
  readonly schedulers: readonly string[];
}

/** The newest allocation by one that counts. Throws where there is none, and what the core node lists as one is not signed so. */
async function findAllocation({ coreUrl, id, schedulers }: AddressQuestion): Promise<Allocation | undefined> {
  const { allocations, refused } = await readAllocations(coreUrl, id, schedulers);
  const [newest] = allocations.toSorted((one, other) => other.decidedMs - one.decidedMs);
  if (!newest && refused) throw refused;
  return newest;
}

/** Whether a machine has the address that its scheduler signed, and that follows from its hash. */
export async function judgeAddress(question: AddressQuestion): Promise<JudgedFact> {
  const { id, ipv6 } = question;
  if (!isInstanceAddress(ipv6, id))
    return { kind: 'wrong', why: 'this is not the address of a machine with this hash', itemHash: null };
  try {
    const newest = await findAllocation(question);
    if (!newest) return { kind: 'said', why: 'this core node has no allocation of it', itemHash: null };
    const { itemHash, sender } = newest;
    return newest.ipv6 === ipv6
      ? { kind: 'proven', why: `signed by the scheduler ${sender}`, itemHash }
      : { kind: 'wrong', why: `the scheduler ${sender} signed ${newest.ipv6 || 'none'}`, itemHash };
  } catch (error) {
    return judgeFailure(error, null);
  }
}

/** Whether a score is the one that a monitor signed. Whether it follows from the measurements, recomputing tells. */
export async function judgeScore(question: {
  readonly coreUrl: string;
  readonly scores: string;
  readonly nodeId: string;
  readonly score: number;
  readonly publishers: readonly string[];
}): Promise<JudgedFact> {
  const { coreUrl, scores, nodeId, score, publishers } = question;
  try {
    const { content, publisher } = await readPublishedScores({ coreUrl }, scores);
    const { ccn, crn } = content.scores;
    const signed = [...ccn, ...crn].find(({ node_id: id }) => id === nodeId)?.total_score;
    if (publishers.length > 0 && !publishers.includes(publisher))
      return {
        kind: 'wrong',
        why: `${publisher} signed it, who is no monitor of this network`,
        itemHash: scores,
      };
    return signed === score
      ? { kind: 'proven', why: `signed by the monitor ${publisher}`, itemHash: scores }
      : { kind: 'wrong', why: `the monitor ${publisher} signed ${signed ?? 'none'}`, itemHash: scores };
  } catch (error) {
    return judgeFailure(error, scores);
  }
}

/** The autonomous system that a monitor found a node in. */
export type Found = Pick<NodeRecord, 'nodeId' | 'asn' | 'asName'>;

export interface FoundSystems {
  readonly fact: JudgedFact;
  /** Unix seconds; null where nothing was measured. */
  readonly measuredAt: number | null;
  readonly found: readonly Found[];
}

const NONE = { measuredAt: null, found: [] };

/** More monitors are not asked. */
const MONITORS_MAX = 24;
/** Measurements that are so much older than the newest say nothing of where nodes are. */
const BEHIND_MAX_SECONDS = 86_400;

/** The newest measurements of one monitor, or what is wrong with what the core node gives as these. Throws where it cannot be asked. */
const askNewest = (coreUrl: string, publisher: string) =>
  readNewestMetrics({ coreUrl }, [publisher]).catch((error: unknown) => judgeFailure(error, null));

/**
 * Which networks nodes are in, by the newest measurements of each monitor, whose signatures are checked: of a node that several measured, the
 * last of them that found its network. What is wrong with those of one monitor is told beside what others found.
 * @param publishers whose measurements count
 */
export async function findSystems(question: {
  readonly coreUrl: string;
  readonly publishers: readonly string[];
}): Promise<FoundSystems> {
  const { coreUrl, publishers } = question;
  const nobody = { kind: 'said' as const, why: 'no monitor measured the nodes', itemHash: null };
  if (publishers.length === 0) return { ...NONE, fact: nobody };
  // One by one: a monitor that publishes often, measures few nodes, or whose newest do not count, hides no other.
  const asked = publishers.slice(0, MONITORS_MAX);
  const last = await Promise.all(asked.map((publisher) => askNewest(coreUrl, publisher)));
  const reports = last
    .flatMap((one) => (one && 'report' in one ? one : []))
    .sort((one, other) => other.time - one.time);
  const wrong = last.find((one) => one !== undefined && 'kind' in one);
  const [newest] = reports;
  if (!newest) return { ...NONE, fact: wrong ?? nobody };
  const found = new Map<string, Found>();
  for (const { time, report } of reports) {
    if (newest.time - time > BEHIND_MAX_SECONDS) break;
    for (const { nodeId, asn, asName } of [...report.core, ...report.compute])
      if (found.get(nodeId)?.asn == null) found.set(nodeId, { nodeId, asn, asName });
  }
  return {
    fact: wrong ?? { kind: 'proven', why: 'signed by a monitor', itemHash: newest.itemHash },
    measuredAt: newest.time,
    found: [...found.values()],
  };
}
