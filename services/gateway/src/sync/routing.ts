import type { DataPlane } from '../dataplane/port.ts';
import type { Instance } from '../table/instance.ts';
import type { InstanceTable } from '../table/table.ts';
import type { StoredState } from './store.ts';

/** The table and the data plane that follows it, and how fresh they are. */
export class Routing {
  readonly table: InstanceTable;
  /** Where the event stream was read up to. */
  cursor: string | undefined;
  readonly #plane: DataPlane;
  readonly #onChange: () => void;
  #lastSyncTime = 0;

  /** @param onChange told when there is something new to keep */
  constructor(table: InstanceTable, plane: DataPlane, onChange: () => void) {
    this.table = table;
    this.#plane = plane;
    this.#onChange = onChange;
  }

  /** Unix seconds, with fractions, of the last full sync or event; 0 before the first. */
  get lastSyncTime(): number {
    return this.#lastSyncTime;
  }

  load(state: StoredState): void {
    for (const instance of state.instances) this.table.put(instance);
    this.cursor = state.cursor;
    this.#lastSyncTime = state.lastSyncTime;
    this.#plane.replaceTable(this.table.routes());
  }

  put(instance: Instance): void {
    this.#plane.applyChanges(this.table.put(instance));
    this.#onChange();
  }

  remove(instance: Instance): void {
    this.#plane.applyChanges(this.table.remove(instance.hash));
    this.#onChange();
  }

  synced(): void {
    this.#lastSyncTime = Date.now() / 1000;
  }

  state(): StoredState {
    return {
      instances: [...this.table.instances()],
      cursor: this.cursor,
      lastSyncTime: this.#lastSyncTime,
    };
  }
}
