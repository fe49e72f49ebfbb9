import {
  ANY_TIME,
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
import { type Allocation, readAllocations } from './allocations.ts';

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
  /** The message places the machine elsewhere: what the core node says has to stand in a newer allocation. */
  readonly isOvertaken?: true;
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

const PLACE = ['node_id', 'node_address', 'ipv6'] as const;
const placeOf = (fields: Fields) => Object.fromEntries(PLACE.map((name) => [name, fields[name]]));
const OVERTAKEN: Judgement = {
  kind: 'said',
  why: 'the core node says that a newer allocation counts',
  isOvertaken: true,
};

/** An allocation that came late may be none that counts: then another one does, which says what the core node says. */
function judgeAllocation(said: Fields, sender: string, { data, schedulers }: ToldChange): Judgement {
  if (!schedulers.includes(sender))
    return { kind: 'said', why: `signed by ${sender}, no scheduler that you believe` };
  return isSame(placeOf(said), placeOf(fieldsOf(data))) ? PROVEN : OVERTAKEN;
}

/** Whether any of the allocations that were signed is the newer one that the core node goes by. */
function judgeOvertaken(
  { data, schedulers }: ToldChange,
  cause: string,
  allocations: readonly Allocation[],
): Judgement {
  const own = allocations.find(({ itemHash }) => itemHash === cause);
  const told = placeOf(fieldsOf(data));
  const saying = allocations.filter(
    ({ content, decidedMs }) => isSame(placeOf(content), told) && decidedMs >= (own?.decidedMs ?? 0),
  );
  const [one] = saying;
  const believed = saying.find(({ sender }) => schedulers.includes(sender));
  if (believed)
    return { kind: 'said', why: `a newer allocation counts, which is signed: ${believed.itemHash}` };
  if (one) return { kind: 'said', why: `${one.itemHash} says so, by no scheduler that you believe` };
  return otherThan('that its place is', told, own ? placeOf(own.content) : null);
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
  const message = verifyShared(shared, ANY_TIME);
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

/** As the page asks for it. */
export interface ToldEvent extends ToldChange {
  readonly coreUrl: string;
}

/** What answers may be a moment behind what told the event: before a contradiction it is asked again. */
const TRIES = 3;
const AGAIN_MS = 2_000;

/** Of the schedulers first: whoever else signs allocations of the machine must not hide theirs. */
async function lookOnce(asked: ToldEvent, cause: string): Promise<Judgement> {
  const { coreUrl, id, schedulers } = asked;
  const { allocations } = await readAllocations(coreUrl, id, schedulers);
  const judged = judgeOvertaken(asked, cause, allocations);
  if (judged.kind !== 'wrong') return judged;
  const ofAll = await readAllocations(coreUrl, id);
  const among = judgeOvertaken(asked, cause, [...allocations, ...ofAll.allocations]);
  return among.kind === 'wrong' && !ofAll.isWhole
    ? { ...OVERTAKEN, why: `${OVERTAKEN.why}, of more than are read here` }
    : among;
}

async function lookForNewer(asked: ToldEvent, cause: string, againMs: number): Promise<Judgement> {
  for (let attempt = 1; ; attempt++) {
    const judged = await lookOnce(asked, cause);
    if (judged.kind !== 'wrong' || attempt === TRIES) return judged;
    await new Promise((resolve) => setTimeout(resolve, againMs));
  }
}

/** The same; a place that its message does not say has to be said by another allocation that was signed. */
export async function judgeEvent(asked: ToldEvent, againMs = AGAIN_MS): Promise<JudgedChange> {
  const judged = judgeChange(asked);
  const { message } = judged;
  if (!judged.isOvertaken || !message) return judged;
  try {
    return { message, ...(await lookForNewer(asked, message.item_hash, againMs)) };
  } catch (error) {
    // A change is judged once, as it is told.
    return { message, kind: 'said', why: error instanceof Error ? error.message : String(error) };
  }
}
