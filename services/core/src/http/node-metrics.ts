import type { HttpServer } from '@skerry/kit';
import { AppError, type NodeKind, parseItemHash, RECORD_NUMBERS } from '@skerry/protocol';
import Type from 'typebox';
import { columnsOf, type MetricsRow, readNodeMetrics, windowOf } from '../measurements/read.ts';
import { reads } from './declare.ts';
import type { Rooms } from './rooms.ts';

/** A year of one node, measured by five monitors every hour. */
const ROWS_MAX = 50_000;
const SORT_DESCENDING = ['desc', 'descending', '-1'];

const date = (description: string) => Type.Optional(Type.Number({ minimum: 0, description }));

const Query = Type.Object({
  start_date: date('Unix seconds, inclusive; two weeks before the end where it is left out'),
  end_date: date('Unix seconds, inclusive'),
  sort: Type.String({
    pattern: '^(?:[aA][sS][cC]|[dD][eE][sS][cC])(?:[eE][nN][dD][iI][nN][gG])?$|^-?1$',
    default: 'asc',
    description: 'asc, ascending, 1; desc, descending, -1: by time of measurement',
  }),
  format: Type.Union([Type.Literal('columns'), Type.Literal('rows')], {
    default: 'columns',
    description: 'parallel arrays with null for what is absent, or one object for each measurement',
  }),
});

const nullable = <T extends Type.TSchema>(schema: T) => Type.Union([schema, Type.Null()]);

function answerOf(kind: NodeKind) {
  const numbers = Object.fromEntries(
    RECORD_NUMBERS[kind].map((name) => [name, Type.Number()] as const),
  ) as Record<string, Type.TNumber>;
  const fields = { ...numbers, asn: Type.Integer(), version: Type.String() };
  const named = { item_hash: Type.String(), measured_at: Type.Number({ description: 'Unix seconds' }) };
  const arrays = (all: Record<string, Type.TSchema>) =>
    Object.fromEntries(Object.entries(all).map(([name, schema]) => [name, Type.Array(schema)]));
  const nullables = Object.fromEntries(Object.entries(fields).map(([name, one]) => [name, nullable(one)]));
  const optionals = Object.fromEntries(
    Object.entries(fields).map(([name, one]) => [name, Type.Optional(one)]),
  );
  return Type.Object({
    metrics: Type.Union([
      Type.Object(arrays({ ...named, ...nullables })),
      Type.Array(Type.Object({ ...named, ...optionals })),
    ]),
  });
}

const asColumns = (kind: NodeKind, rows: readonly MetricsRow[]) =>
  Object.fromEntries(columnsOf(kind).map((column) => [column, rows.map((row) => row[column] ?? null)]));

const asRows = (rows: readonly MetricsRow[]) =>
  rows.map((row) => Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null)));

/** What trusted monitors measured of one node (specification, "Node metrics lookup"; docs/decisions.md 10). */
export async function nodeMetricsRoutes(app: HttpServer, rooms: Rooms): Promise<void> {
  for (const kind of ['core', 'compute'] as const) {
    app.get(
      `/${kind}/:node_hash/metrics`,
      {
        schema: {
          summary: `Measurements of one ${kind} node, of the last two weeks unless told otherwise`,
          params: Type.Object({ node_hash: Type.String() }),
          querystring: Query,
          response: { 200: answerOf(kind) },
        },
        config: reads('INVALID_HASH', 'NODE_NOT_FOUND'),
      },
      async ({ params, query }, reply) => {
        const nodeId = parseItemHash(params.node_hash);
        const window = windowOf(query.start_date, query.end_date, rooms.now() / 1000);
        const isNewestFirst = SORT_DESCENDING.includes(query.sort.toLowerCase());
        const rows = await readNodeMetrics(rooms.db, kind, nodeId, window, isNewestFirst, ROWS_MAX + 1);
        if (rows.length === 0)
          throw new AppError(
            'NODE_NOT_FOUND',
            `there are no measurements of the ${kind} node ${nodeId} then`,
          );
        if (rows.length > ROWS_MAX)
          throw new AppError(
            'INVALID_PARAMETERS',
            `more than ${ROWS_MAX} measurements: ask for a shorter time`,
          );
        return reply.send({
          metrics: query.format === 'rows' ? asRows(rows) : asColumns(kind, rows),
        } as never);
      },
    );
  }
}
