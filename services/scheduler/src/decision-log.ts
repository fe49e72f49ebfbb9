import type { Decision } from './planning/planner.ts';

export interface DecisionRecord extends Decision {
  readonly decidedAtMs: number;
}

/** Instances whose decisions are remembered, and decisions of each. What is older can be read from the messages. */
const INSTANCES_MAX = 20_000;
const DECISIONS_MAX = 8;

/** What was decided last, to explain it. Only in memory. */
export class DecisionLog {
  readonly #byInstance = new Map<string, readonly DecisionRecord[]>();

  add(record: DecisionRecord): void {
    const { instanceId } = record;
    const before = this.#byInstance.get(instanceId) ?? [];
    this.#byInstance.delete(instanceId);
    this.#byInstance.set(instanceId, [...before, record].slice(-DECISIONS_MAX));
    if (this.#byInstance.size <= INSTANCES_MAX) return;
    for (const oldest of this.#byInstance.keys()) {
      this.#byInstance.delete(oldest);
      break;
    }
  }

  /** Oldest first. */
  list(instanceId: string): readonly DecisionRecord[] {
    return this.#byInstance.get(instanceId) ?? [];
  }
}
