import pg from 'pg';

/** A statement that a connection knows by a name once it has prepared it. */
export interface Named {
  readonly name: string;
  readonly text: string;
  readonly values: readonly unknown[];
}

/** What `pg` makes of the server's description of a statement's rows. */
interface Shape {
  readonly fields: readonly pg.FieldDef[];
  readonly _parsers: readonly unknown[] | undefined;
  readonly _prebuiltEmptyResultObject: object | null;
}

/** By the name of the statement; of one connection, since another may have prepared it before a column was added. */
export type Shapes = Map<string, Shape>;

/** What `pg` has for a statement and its types do not name. */
interface Statements {
  bind(config: object): void;
  execute(config: object): void;
  sync(): void;
}
interface Inner {
  readonly name: string;
  readonly values: readonly unknown[];
  readonly _result: Shape;
  _accumulateRows: boolean;
  prepare(connection: Statements): void;
  handleRowDescription(message: object): void;
}
const inner = pg.Query.prototype as unknown as Inner;
const { prepareValue } = (pg as unknown as { utils: { prepareValue: (value: unknown) => unknown } }).utils;

/**
 * A statement that is asked for the rows alone once the server has described them: it says the same of each answer of a prepared statement,
 * and fails where it would have to say something else (isOutdated). Reading a description of thirty columns takes longer than their row.
 */
export class NamedQuery extends pg.Query {
  readonly #shapes: Shapes;

  constructor(named: Named, shapes: Shapes, callback: (error: Error | undefined, result: unknown) => void) {
    // Before it is sent: what fails there leaves the connection waiting.
    const values = named.values.map((value) => prepareValue(value));
    super(named.text, values, callback);
    Object.assign(this, { name: named.name });
    this.#shapes = shapes;
  }

  prepare(connection: Statements): void {
    const own = this as unknown as Inner;
    const shape = this.#shapes.get(own.name);
    if (!shape) {
      inner.prepare.call(own, connection);
      return;
    }
    Object.assign(own._result, shape);
    own._accumulateRows = true;
    connection.bind({ portal: '', statement: own.name, values: own.values });
    connection.execute({ portal: '' });
    connection.sync();
  }

  handleRowDescription(message: object): void {
    const own = this as unknown as Inner;
    inner.handleRowDescription.call(own, message);
    const { fields, _parsers, _prebuiltEmptyResultObject } = own._result;
    this.#shapes.set(own.name, { fields, _parsers, _prebuiltEmptyResultObject });
  }
}
