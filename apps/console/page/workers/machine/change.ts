import { AppError, fieldsOf, NETWORK_POST, readInstanceMessage, verifyShared } from '@skerry/protocol';
import type { JudgedFact } from '../facts.ts';

/** A change of a machine, as an event of the core node tells it. */
export interface ToldChange {
  readonly id: string;
  /** The machine after the change. */
  readonly data: unknown;
  /** The message that changed it. */
  readonly cause: string | null;
  readonly shared: string | null;
  /** Whose allocations count. */
  readonly schedulers: readonly string[];
}

export interface JudgedChange extends Pick<JudgedFact, 'kind' | 'why'> {
  /** What was signed; null where nothing is shown that was. */
  readonly message: {
    readonly item_hash: string;
    readonly sender: string;
    readonly type: string;
    /** Unix seconds. */
    readonly time: number;
    readonly content: unknown;
  } | null;
}

type Judgement = Omit<JudgedChange, 'message'>;
const PROVEN: Judgement = { kind: 'proven', why: 'its message is signed, and says so' };

/** A status is told when it is newer than all before: what it says is so. An allocation that came late may be none that counts. */
function judgeContent(content: unknown, sender: string, asked: ToldChange): Judgement {
  const { type, content: inner } = fieldsOf(content);
  const [said, told] = [fieldsOf(inner), fieldsOf(asked.data)];
  if (type === NETWORK_POST.instanceStatus) {
    if (said.phase === told.phase && sender === told.node_address) return PROVEN;
    const why = `the core node says ${String(told.phase)} by ${String(told.node_address)}, signed was ${String(said.phase)} by ${sender}`;
    return { kind: 'wrong', why };
  }
  if (type !== NETWORK_POST.allocation) return PROVEN;
  if (!asked.schedulers.includes(sender))
    return { kind: 'said', why: `signed by ${sender}, no scheduler that you believe` };
  return said.node_id === told.node_id && said.ipv6 === told.ipv6
    ? PROVEN
    : { kind: 'said', why: 'the core node says that a newer allocation counts' };
}

function judge(asked: ToldChange, cause: string, shared: string): JudgedChange {
  const message = verifyShared(shared, Number.MAX_SAFE_INTEGER);
  const { itemHash: item_hash, sender, type, time, content } = message;
  if (item_hash !== cause || readInstanceMessage(message)?.instanceId !== asked.id)
    throw new AppError('HASH_MISMATCH', 'what was signed is not what the core node says changed the machine');
  const shown = { item_hash, sender, type, time, content };
  return { ...judgeContent(content, sender, asked), message: shown };
}

/** Whether a machine was changed by a signed message that says so. */
export function judgeChange(asked: ToldChange): JudgedChange {
  const { cause, shared } = asked;
  if (cause === null || shared === null)
    return { kind: 'said', why: 'no message alone says so', message: null };
  try {
    return judge(asked, cause, shared);
  } catch (error) {
    const why = error instanceof AppError ? `${error.message} (${error.code})` : String(error);
    return { kind: 'wrong', why, message: null };
  }
}
