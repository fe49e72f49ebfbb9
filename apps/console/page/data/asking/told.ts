import { nodesOf } from '../../pure/timeline.ts';
import { readWholeMessages, type WholeMessage } from '../answers.ts';
import { ask } from '../ask.ts';

/** Messages that are looked at of schedulers, of the node that has it, of those that had it, and of whoever else. */
const TOLD_MAX = 100;
/** Nodes that a machine was given to, the last ones. */
const NODES_MAX = 20;

interface ToldQuestion {
  readonly coreUrl: string;
  readonly id: string;
  /** Whose allocations count. */
  readonly schedulers: readonly string[];
}

/**
 * The newest messages that tell of a machine, each once, in no order. Anybody may name it in as many as they like: schedulers, the node that
 * they gave it to last, and those before, are asked for by themselves. Throws as `ask` does.
 */
export async function askTold(
  { coreUrl, id, schedulers }: ToldQuestion,
  signal: AbortSignal,
): Promise<readonly WholeMessage[]> {
  const url = `${coreUrl}/api/v0/messages.json?refs=${id}&pagination=${TOLD_MAX}&bodies=shared`;
  const read = async (by: string) => (await ask(`${url}${by}`, readWholeMessages, signal)).messages;
  const readOf = async (senders: readonly string[]) =>
    senders.length === 0 ? [] : read(`&addresses=${encodeURIComponent(senders.join(','))}`);
  const [placed, anybodys] = await Promise.all([readOf(schedulers), read('')]);
  const [last, ...former] = [...nodesOf(placed, schedulers)].slice(0, NODES_MAX);
  const nodes = await Promise.all([readOf(last === undefined ? [] : [last]), readOf(former)]);
  const all = [...placed, ...nodes.flat(), ...anybodys];
  return [...new Map(all.map((message) => [message.item_hash, message])).values()];
}
