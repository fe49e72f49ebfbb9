import type { InstanceView } from '@skerry/protocol';

/** What a core node is being asked of instances: anybody may have it asked, and an older word must not take the place of a newer one. */
export class Looks {
  readonly #underWay = new Map<string, Set<{ isOvertaken: boolean }>>();

  /** More was heard of an instance. */
  overtake(id: string): void {
    for (const look of this.#underWay.get(id) ?? []) look.isOvertaken = true;
  }

  /** @param apply gets what `ask` gives, and whether more was heard meanwhile. Throws what both do. */
  async look(
    id: string,
    ask: () => Promise<InstanceView>,
    apply: (view: InstanceView, isOvertaken: () => boolean) => Promise<void>,
  ): Promise<InstanceView> {
    const look = { isOvertaken: false };
    const looks = this.#underWay.get(id) ?? new Set();
    this.#underWay.set(id, looks.add(look));
    try {
      const view = await ask();
      await apply(view, () => look.isOvertaken);
      return view;
    } finally {
      looks.delete(look);
      if (looks.size === 0) this.#underWay.delete(id);
    }
  }
}
