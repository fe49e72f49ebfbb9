/** A message of which a step is told. */
export interface StepMessage {
  readonly item_hash: string;
  readonly sender: string;
  readonly type: string;
  /** Unix seconds. */
  readonly time: number;
  readonly content: unknown;
}

/** Something that was told of a machine. */
export interface Step {
  /** Null where no message alone says it. */
  readonly message: StepMessage | null;
  /** When it was so, by its sender's word, Unix milliseconds. */
  readonly atMs: number;
  /** `running`, `placed`. */
  readonly what: string;
  /** What it says beside. */
  readonly why: string | null;
  readonly node: string | null;
  /** Why it may not count, although it is signed; null where it does, or nothing tells. */
  readonly doubt: string | null;
}

type Content = Readonly<Record<string, unknown>>;

const contentOf = (value: unknown): Content =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {};
const textOf = (value: unknown) => (typeof value === 'string' && value !== '' ? value : null);
const timeOf = (value: unknown) => (typeof value === 'number' && Number.isFinite(value) ? value : null);

const postOf = ({ type, content }: StepMessage) => {
  const outer = contentOf(content);
  return {
    outer,
    inner: contentOf(outer.content),
    kind: type === 'POST' ? textOf(outer.type) : type,
  };
};

/** What an update has beside its changes. */
const NO_CHANGES = ['instance_id', 'address', 'time'];

/** What a message says of a machine. */
export function stepOf(message: StepMessage): Step {
  const { outer, inner, kind } = postOf(message);
  const why = textOf(contentOf(inner.reason).message);
  const atMs = timeOf(inner.observed_at_ms) ?? timeOf(inner.decided_at_ms) ?? message.time * 1_000;
  const node = textOf(inner.node_id);
  const said = { message, atMs, doubt: null };
  if (kind === 'net-instance-status')
    return { ...said, what: textOf(inner.phase) ?? 'a status', why, node: null };
  if (kind === 'net-allocation') {
    const what = node === null ? 'no node' : 'placed';
    return { ...said, what, why: why ?? textOf(inner.ipv6), node };
  }
  if (kind === 'INSTANCE') return { ...said, what: 'asked for', why: null, node: null };
  if (kind === 'INSTANCE_CONTROL') {
    const action = textOf(outer.action) ?? textOf(inner.action) ?? 'control';
    return { ...said, what: `its owner: ${action}`, why: null, node: null };
  }
  if (kind === 'INSTANCE_UPDATE') {
    const changed = Object.keys(outer).filter((name) => !NO_CHANGES.includes(name));
    return { ...said, what: 'its owner: changed it', why: changed.join(', '), node: null };
  }
  return { ...said, what: kind ?? message.type, why: null, node: null };
}

/** A change that no message alone says, as the core node tells the machine after it. */
export function changeOf(data: unknown, atMs: number): Step {
  const { phase, reason, node_id: node } = contentOf(data);
  const why = textOf(contentOf(reason).message);
  return {
    ...{ message: null, atMs, doubt: null },
    ...{ what: textOf(phase) ?? 'changed', why, node: textOf(node) },
  };
}

/** What was signed for the owner that changes this machine, of all that was. */
export const ofMachine = <M extends StepMessage>(messages: readonly M[], id: string): M[] =>
  messages.filter(({ content }) => contentOf(content).instance_id === id);

/** Addresses of the nodes that a machine was given to, in the order of the messages. @param schedulers whose allocations count */
export const nodesOf = (
  messages: readonly StepMessage[],
  schedulers: readonly string[],
): ReadonlySet<string> =>
  new Set(
    messages.flatMap((message) => {
      const { inner, kind } = postOf(message);
      const isCounted = kind === 'net-allocation' && schedulers.includes(message.sender);
      return (isCounted && textOf(inner.node_address)) || [];
    }),
  );

/** Anybody may sign that a machine runs: it counts by its node, as a scheduler counts who is believed. */
function doubtOf(message: StepMessage, schedulers: readonly string[], nodes: ReadonlySet<string>) {
  const { kind } = postOf(message);
  if (kind === 'net-allocation' && !schedulers.includes(message.sender))
    return 'signed, but by no scheduler that you believe';
  if (kind === 'net-instance-status' && !nodes.has(message.sender))
    return 'signed, but no allocation shown here names its sender';
  return null;
}

/** What was told of a machine, newest first. @param schedulers whose allocations count; undefined: nobody knows yet */
export function timelineOf(
  messages: readonly StepMessage[],
  schedulers: readonly string[] | undefined,
): Step[] {
  const nodes = schedulers && nodesOf(messages, schedulers);
  return messages
    .map((message) => ({
      ...stepOf(message),
      doubt: nodes ? doubtOf(message, schedulers, nodes) : null,
    }))
    .sort((one, other) => other.atMs - one.atMs);
}
