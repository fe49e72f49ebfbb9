import type { WholeMessage } from '../data/answers.ts';

/** Something that was told of a machine. */
export interface Step {
  readonly message: WholeMessage;
  /** When it was so, by its sender's word, Unix milliseconds. */
  readonly atMs: number;
  /** `running`, `placed`. */
  readonly what: string;
  /** What it says beside. */
  readonly why: string | null;
  readonly node: string | null;
}

type Content = Readonly<Record<string, unknown>>;

const contentOf = (value: unknown): Content =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {};
const textOf = (value: unknown) => (typeof value === 'string' && value !== '' ? value : null);
const timeOf = (value: unknown) => (typeof value === 'number' && Number.isFinite(value) ? value : null);

function stepOf(message: WholeMessage): Step {
  const outer = contentOf(message.content);
  const inner = contentOf(outer.content);
  const kind = message.type === 'POST' ? textOf(outer.type) : message.type;
  const why = textOf(contentOf(inner.reason).message);
  const atMs = timeOf(inner.observed_at_ms) ?? timeOf(inner.decided_at_ms) ?? message.time * 1_000;
  const node = textOf(inner.node_id);
  if (kind === 'net-instance-status')
    return { message, atMs, what: textOf(inner.phase) ?? 'a status', why, node: null };
  if (kind === 'net-allocation') {
    const what = node === null ? 'no node' : 'placed';
    return { message, atMs, what, why: why ?? textOf(inner.ipv6), node };
  }
  if (kind === 'INSTANCE') return { message, atMs, what: 'asked for', why: null, node: null };
  if (kind === 'INSTANCE_CONTROL')
    return {
      message,
      atMs,
      what: `its owner: ${textOf(outer.action) ?? textOf(inner.action) ?? 'control'}`,
      why: null,
      node: null,
    };
  return { message, atMs, what: kind ?? message.type, why: null, node: null };
}

/** What was told of a machine, newest first. */
export const timelineOf = (messages: readonly WholeMessage[]): Step[] =>
  messages.map(stepOf).sort((one, other) => other.atMs - one.atMs);
