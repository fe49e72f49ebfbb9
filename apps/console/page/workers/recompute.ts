import {
  CoreClient,
  computeScoresOf,
  type RefusedMessage,
  readPublishedScores,
  readTerms,
  signedRows,
} from '@skerry/client';
import { canonicalJson, fieldsOf, type HourDetail, sha256Hex } from '@skerry/protocol';
import { type ComparedLine, compareLines } from '../pure/trust/compare.ts';

/** Published scores beside those that this browser computed from the signed measurements. */
export interface Recomputed {
  readonly itemHash: string;
  /** Who signed the scores, and whose measurements they follow from. */
  readonly publisher: string;
  readonly publishers: readonly string[];
  readonly period: { readonly from: number; readonly to: number };
  /** Measurements whose signatures were checked here, and those that failed. */
  readonly verified: number;
  readonly refused: readonly RefusedMessage[];
  /** Hashes of all scores. */
  readonly published: string;
  readonly computed: string;
  /** Measurements that the publisher counted, and that this core node gave. */
  readonly publishedCount: number;
  readonly computedCount: number;
  readonly isSameInput: boolean;
  readonly isSame: boolean;
  /** Of every node, whether its lines are equal. */
  readonly nodes: readonly { readonly id: string; readonly isEqual: boolean }[];
  /** The lines of the node that was asked for. */
  readonly lines: readonly ComparedLine[];
  /** Its hours, newest first. */
  readonly hours: readonly HourDetail[];
}

/** The scoring is the one that monitors publish with. Throws AppError. @param onProgress told how many measurements were verified */
export async function recompute(
  coreUrl: string,
  scoresHash: string,
  nodeId: string,
  onProgress: (verified: number) => void,
): Promise<Recomputed> {
  const { content, publisher, itemHash, signed } = await readPublishedScores({ coreUrl }, scoresHash);
  const terms = await readTerms(new CoreClient({ url: coreUrl }), signed);
  const refused: RefusedMessage[] = [];
  const hours: HourDetail[] = [];
  let verified = 0;
  const source = {
    coreUrl,
    onRefused: (one: RefusedMessage) => void refused.push(one),
    onProgress: (count: number) => {
      verified = count;
      onProgress(count);
    },
  };
  const { content: again } = await computeScoresOf(source, terms, (_kind, id, detail) => {
    if (id === nodeId) hours.push(detail);
  });
  const { scores } = fieldsOf(signed);
  const [theirs, ours] = [signedRows(scores), signedRows(again.scores)];
  const published = sha256Hex(canonicalJson(scores));
  const nodes = [...new Set([...theirs.keys(), ...ours.keys()])].map((id) => ({
    id,
    isEqual: compareLines(theirs.get(id), ours.get(id)).every(({ isEqual }) => isEqual),
  }));
  return {
    ...{ itemHash, publisher, publishers: terms.publishers, period: terms.period, verified, refused },
    ...{ published, computed: again.scores_hash, hours, nodes },
    publishedCount: content.inputs.metrics.count,
    computedCount: again.inputs.metrics.count,
    isSameInput: content.inputs.metrics.hash === again.inputs.metrics.hash,
    isSame: published === again.scores_hash && published === content.scores_hash && refused.length === 0,
    lines: compareLines(theirs.get(nodeId), ours.get(nodeId)),
  };
}
