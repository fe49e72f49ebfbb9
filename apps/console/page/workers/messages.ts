import {
  type ChainedConfirmation,
  type Confirmation,
  call,
  type Delegation,
  type ListedMessage,
  listedOf,
  proveConfirmation,
  proveDelegation,
  verifyListed,
} from '@skerry/client';
import { AppError, canonicalJson, fieldsOf, type VerifiedMessage } from '@skerry/protocol';
import { MESSAGES_API } from '@skerry/protocol/api/core/messages';
import { isUnchecked } from '../pure/trust/unchecked.ts';

/** Something that the core node says of a message, and the signature says otherwise. */
export interface Contradiction {
  readonly name: string;
  readonly said: string;
  readonly signed: string;
}

/** What the sender of a message signed. */
export interface ProvenMessage {
  readonly form: VerifiedMessage['form'];
  readonly itemHash: string;
  readonly sender: string;
  readonly type: string;
  /** Unix seconds. */
  readonly time: number;
  /** Null where nothing signed covers it. */
  readonly channel: string | null;
  readonly content: unknown;
  /** The text that the hash or the signature covers; null where it is a file. */
  readonly text: string | null;
  readonly contradictions: readonly Contradiction[];
  /** By what right it was signed for somebody else; null where its owner signed it. */
  readonly delegation: Delegation | null;
}

const asText = (value: unknown) => (typeof value === 'string' ? value : canonicalJson(value ?? null));

function compare(pairs: Readonly<Record<string, readonly [unknown, unknown]>>): Contradiction[] {
  return Object.entries(pairs).flatMap(([name, [said, signed]]) =>
    asText(said) === asText(signed) ? [] : [{ name, said: asText(said), signed: asText(signed) }],
  );
}

/** What the core node says of a message, and what was signed. Throws AppError for what nobody signed. */
async function readProven(coreUrl: string, hash: string) {
  const view = await call(coreUrl, MESSAGES_API.getMessage, { params: { hash } });
  const proven = await verifyListed({ coreUrl }, listedOf(view));
  if (proven.itemHash !== hash)
    throw new AppError('HASH_MISMATCH', `the core node returned another message for ${hash}`);
  return { view, proven };
}

/** Whether a chain has a confirmation of a message, as an endpoint of the chain tells. Throws AppError. */
export async function proveOnChain(asked: {
  readonly coreUrl: string;
  readonly rpcUrl: string;
  readonly hash: string;
  readonly confirmation: Confirmation;
}): Promise<ChainedConfirmation> {
  const { proven } = await readProven(asked.coreUrl, asked.hash);
  return proveConfirmation(asked, asked.confirmation, proven);
}

/** A message with everything that its signature covers. Throws AppError for what nobody signed. */
export async function proveMessage(coreUrl: string, hash: string): Promise<ProvenMessage> {
  const { view, proven } = await readProven(coreUrl, hash);
  const { form, itemHash, sender, type, time, channel, content, sourceText } = proven;
  const contradictions = compare({
    sender: [view.sender.toLowerCase(), sender.toLowerCase()],
    type: [view.type, type],
    content: [form === 'network' ? (view.message?.content ?? view.content) : view.content, content],
  });
  const delegation = (await proveDelegation({ coreUrl }, proven)) ?? null;
  return {
    form,
    itemHash,
    sender,
    type,
    time,
    channel,
    content,
    text: sourceText,
    contradictions,
    delegation,
  };
}

/** Of each message whether its sender signed it as it is listed. */
export interface Judged {
  readonly itemHash: string;
  /** Undefined where the signature is right. */
  readonly failure: { readonly code: string; readonly message: string } | undefined;
  /** Of a post whose signature is right, as its sender calls it. */
  readonly postType?: string | undefined;
}

/** Whether a list shows the content that was signed: beside that of another form it says whose it is, and of when. */
function isListedAs({ form, sender, time, content }: VerifiedMessage, listed: unknown): boolean {
  if (form === 'network') return asText(content) === asText(listed);
  const { address, time: listedTime, ...rest } = fieldsOf(listed);
  const { address: ownAddress = sender, time: ownTime = time, ...signed } = content ?? {};
  const isSame = (said: unknown, proven: unknown) => said === undefined || asText(said) === asText(proven);
  return asText(rest) === asText(signed) && isSame(address, ownAddress) && isSame(listedTime, ownTime);
}

async function judge(coreUrl: string, row: ListedMessage): Promise<Judged['failure']> {
  try {
    const proven = await verifyListed({ coreUrl }, row);
    if (proven.itemHash === row.item_hash && isListedAs(proven, row.content)) return undefined;
    return { code: 'HASH_MISMATCH', message: 'what is listed is not what was signed' };
  } catch (error) {
    return error instanceof AppError ? error : { code: 'INTERNAL', message: String(error) };
  }
}

/** Judgements that are remembered: a list is asked for again and again. */
const KNOWN_MAX = 1_000;
const known = new Map<string, Judged>();

export async function judgeMessages(coreUrl: string, rows: readonly ListedMessage[]): Promise<Judged[]> {
  const judged: Judged[] = [];
  for (const row of rows) {
    const key = JSON.stringify([coreUrl, row]);
    const failure = known.has(key) ? known.get(key)!.failure : await judge(coreUrl, row);
    const one: Judged = {
      itemHash: row.item_hash,
      failure: failure && { code: failure.code, message: failure.message },
    };
    if (known.size >= KNOWN_MAX) known.clear();
    // What could not be asked is asked again.
    if (!failure || !isUnchecked(failure)) known.set(key, one);
    judged.push(one);
  }
  return judged;
}
