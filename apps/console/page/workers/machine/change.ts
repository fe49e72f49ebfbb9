import {
  AppError,
  canonicalJson,
  type Fields,
  fieldsOf,
  type InstanceFold,
  instanceViewOf,
  NETWORK_POST,
  readInstanceMessage,
  type VerifiedMessage,
  verifyShared,
} from '@skerry/protocol';
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

const isSame = (said: unknown, told: unknown) => canonicalJson(said) === canonicalJson(told);
const otherThan = (what: string, told: unknown, said: unknown): Judgement => ({
  kind: 'wrong',
  why: `the core node says ${what} ${JSON.stringify(told)}, signed was ${JSON.stringify(said)}`,
});
const NEWER: Judgement = { kind: 'said', why: 'the core node says that a newer message counts' };

/** A status is told when it is newer than all before: what it says is so. */
function judgeStatus(said: Fields, sender: string, told: Fields): Judgement {
  if (sender !== told.node_address) return otherThan('that it is by', told.node_address, sender);
  if (said.phase !== told.phase) return otherThan('that it is', told.phase, said.phase);
  return isSame(said.reason ?? null, told.reason ?? null)
    ? PROVEN
    : otherThan('that the reason is', told.reason, said.reason);
}

/** An allocation that came late may be none that counts. */
function judgeAllocation(said: Fields, sender: string, { data, schedulers }: ToldChange): Judgement {
  if (!schedulers.includes(sender))
    return { kind: 'said', why: `signed by ${sender}, no scheduler that you believe` };
  const told = fieldsOf(data);
  return said.node_id === told.node_id && said.ipv6 === told.ipv6
    ? PROVEN
    : { kind: 'said', why: 'the core node says that a newer allocation counts' };
}

/** What later messages of the owner do not change. */
const FIXED = ['owner', 'cpu', 'memory', 'disk', 'image', 'ssh_key'] as const;
/** What they change. */
const SETTABLE = ['name', 'description', 'firewall'] as const;

/** What an owner signed: the machine itself, or a change of it, which a newer one may have overtaken. */
function judgeOwners(type: string, content: unknown, fold: InstanceFold, data: unknown): Judgement {
  const told = fieldsOf(data);
  if (type === 'INSTANCE_CONTROL') {
    const desired = fieldsOf(content).action === 'stop' ? 'stopped' : 'running';
    return desired === told.desired ? PROVEN : NEWER;
  }
  const created = fold.apply(undefined, new Set());
  const said: Fields = created ? { ...instanceViewOf(created) } : fieldsOf(content);
  const wrong = created && FIXED.find((name) => said[name] !== told[name]);
  if (wrong) return otherThan(`that its ${wrong} is`, told[wrong], said[wrong]);
  return SETTABLE.every((name) => said[name] === undefined || isSame(said[name], told[name]))
    ? PROVEN
    : NEWER;
}

function judgeContent(message: VerifiedMessage, fold: InstanceFold, asked: ToldChange): Judgement {
  const { type: postType, content } = fieldsOf(message.content);
  const said = fieldsOf(content);
  if (message.type !== 'POST') return judgeOwners(message.type, message.content, fold, asked.data);
  return postType === NETWORK_POST.allocation
    ? judgeAllocation(said, message.sender, asked)
    : judgeStatus(said, message.sender, fieldsOf(asked.data));
}

function judge(asked: ToldChange, cause: string, shared: string): JudgedChange {
  const message = verifyShared(shared, Number.MAX_SAFE_INTEGER);
  const { itemHash: item_hash, sender, type, time, content } = message;
  const read = readInstanceMessage(message);
  if (item_hash !== cause || read?.instanceId !== asked.id)
    throw new AppError('HASH_MISMATCH', 'what was signed is not what the core node says changed the machine');
  const shown = { item_hash, sender, type, time, content };
  return { ...judgeContent(message, read.fold, asked), message: shown };
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
