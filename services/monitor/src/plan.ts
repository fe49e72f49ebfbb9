import { createHmac } from 'node:crypto';
import type { MeasuredNode } from './node-list.ts';

export interface Visit {
  readonly node: MeasuredNode;
  /** When to contact the node, milliseconds since 1970. */
  readonly atMs: number;
}

export interface HourWindow {
  readonly startMs: number;
  /** Until when visits begin. */
  readonly lastVisitMs: number;
  readonly endMs: number;
}

/** What is kept free at the end of an hour for the last visits and the publication. */
const MARGIN_MS = 120_000;
const MARGIN_PART = 6;
const FRACTION_BYTES = 6;

/** The hour that a moment is in. Hours are counted from 1970. */
export function windowAt(nowMs: number, hourMs: number): HourWindow {
  const startMs = Math.floor(nowMs / hourMs) * hourMs;
  const endMs = startMs + hourMs;
  return { startMs, endMs, lastVisitMs: endMs - Math.min(MARGIN_MS, hourMs / MARGIN_PART) };
}

/** 0 to below 1, from the seed, the hour and the node alone. */
function fractionOf(seed: string, startMs: number, { kind, nodeId }: MeasuredNode): number {
  const digest = createHmac('sha256', seed).update(`${startMs}\n${kind}\n${nodeId}`).digest();
  return digest.readUIntBE(0, FRACTION_BYTES) / 2 ** (8 * FRACTION_BYTES);
}

/**
 * When to contact each node during an hour: spread evenly at random. Follows from its arguments, so that a monitor that
 * was killed goes on with the same plan; who does not know the seed cannot foretell it.
 */
export function planHour(nodes: readonly MeasuredNode[], seed: string, window: HourWindow): Visit[] {
  const { startMs, lastVisitMs } = window;
  return nodes
    .map((node) => ({
      node,
      atMs: startMs + Math.floor(fractionOf(seed, startMs, node) * (lastVisitMs - startMs)),
    }))
    .sort((a, b) => a.atMs - b.atMs || (a.node.nodeId < b.node.nodeId ? -1 : 1));
}
