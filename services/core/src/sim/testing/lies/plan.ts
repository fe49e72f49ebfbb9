import { buildNetworkMessage, buildStoredMessage, type MessageDraft, signMessage } from '@skerry/client';
import { signers } from '../../../testing/core.ts';
import type { SeededDice } from '../dice.ts';

/** Who signs what is planned. */
export const OWNERS = [signers.alice, signers.bob] as const;

export type PlannedKind = 'envelope' | 'network' | 'stored' | 'aggregate' | 'amend' | 'forget';

/** One message of an honest client. Which it is never hangs on what becomes of others, so that two runs have the same. */
export interface Planned {
  readonly kind: PlannedKind;
  /** Which of the owners signs it. */
  readonly owner: number;
  /** Of an earlier one that it is about; -1 for none. */
  readonly about: number;
  /** Which node takes it; and which takes its file. */
  readonly node: number;
  readonly fileNode: number;
}

const TARGETS: readonly PlannedKind[] = ['envelope', 'network', 'stored'];

/** What honest clients send in a run, and where. @param nodes that are there from the start */
export function planMessages(dice: SeededDice, count: number, nodes: number): Planned[] {
  const plan: Planned[] = [];
  for (let at = 0; at < count; at++) {
    const owner = dice.below(OWNERS.length);
    const targets = plan.flatMap((one, nth) =>
      one.owner === owner && TARGETS.includes(one.kind) ? [nth] : [],
    );
    const roll = dice.next();
    const about = targets.length > 0 ? targets[dice.below(targets.length)]! : -1;
    const kinds: PlannedKind[] = ['envelope', 'network', 'stored'];
    const kind: PlannedKind =
      about >= 0 && roll < 0.3
        ? 'forget'
        : about >= 0 && roll < 0.4
          ? 'amend'
          : roll < 0.45
            ? 'aggregate'
            : kinds[dice.below(kinds.length)]!;
    plan.push({ kind, owner, about, node: dice.below(nodes), fileNode: dice.below(nodes) });
  }
  return plan;
}

export interface Sent {
  readonly body: string;
  readonly itemHash: string;
  /** The file that is its content. */
  readonly file?: string | undefined;
}

const isAbout = ({ kind }: Planned) => kind === 'forget' || kind === 'amend';

/** @param target the hash of what it is about */
export function signPlanned(one: Planned, at: number, target: string | undefined, nowMs: number): Sent {
  const signer = OWNERS[one.owner]!;
  const timestamp = Math.floor(nowMs / 1000);
  const note = { type: 'note', content: { n: at } };
  const sign = (draft: MessageDraft): Sent =>
    signMessage({ ...draft, timestamp, nonce: `plan ${at}` }, signer);
  if (isAbout(one) && target === undefined) throw new Error('what a planned message is about was not sent');
  switch (one.kind) {
    case 'forget':
      return sign({ type: 'FORGET', content: { hashes: [target!] } });
    case 'amend':
      return sign({ type: 'POST', content: { type: 'amend', ref: target!, content: { n: at } } });
    case 'aggregate':
      return sign({ type: 'AGGREGATE', content: { key: 'plan', content: { [`f${at % 4}`]: at } } });
    case 'network':
      return buildNetworkMessage({ type: 'POST', content: note, time: timestamp }, signer);
    case 'stored': {
      const { body, itemHash, content } = buildStoredMessage(
        { type: 'POST', content: note, time: timestamp },
        signer,
      );
      return { body, itemHash, file: content };
    }
    default:
      return sign({ type: 'POST', content: note });
  }
}
