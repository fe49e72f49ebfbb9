import { type NodeKind, RECORD_NUMBERS } from '../../measurement/report.ts';
import { type Static, type TSchema, Type } from '../../type.ts';
import { type Api, defaulted, orNull } from '../operation.ts';
import { unixSeconds } from './common/dates.ts';
import { reads } from './common/declare.ts';

const MetricsQuery = Type.Object(
  {
    start_date: unixSeconds('inclusive; two weeks before the end where it is left out'),
    end_date: unixSeconds('inclusive'),
    sort: defaulted(
      Type.String({
        pattern: '^(?:[aA][sS][cC]|[dD][eE][sS][cC])(?:[eE][nN][dD][iI][nN][gG])?$|^-?1$',
        description: 'asc, ascending, 1; desc, descending, -1: by time of measurement',
      }),
      'asc',
    ),
    format: defaulted(
      Type.Union([Type.Literal('columns'), Type.Literal('rows')], {
        description: 'parallel arrays with null for what is absent, or one object for each measurement',
      }),
      'columns',
    ),
  },
  { additionalProperties: false },
);

const NodeParams = Type.Object({
  node_hash: Type.String({ description: 'the node, 64 hexadecimal digits' }),
});

const mapValues = (all: Readonly<Record<string, TSchema>>, change: (schema: TSchema) => TSchema) =>
  Object.fromEntries(Object.entries(all).map(([name, schema]) => [name, change(schema)]));

function answerOf(kind: NodeKind, title: string) {
  const numbers = Object.fromEntries(RECORD_NUMBERS[kind].map((name) => [name, Type.Number()]));
  const measured = { ...numbers, asn: Type.Integer(), version: Type.String() };
  const named = { item_hash: Type.String(), measured_at: Type.Number({ description: 'Unix seconds' }) };
  const columns = mapValues({ ...named, ...mapValues(measured, (schema) => orNull(schema)) }, (schema) =>
    Type.Array(schema),
  );
  const row = { ...named, ...mapValues(measured, (schema) => Type.Optional(schema)) };
  return Type.Object(
    {
      metrics: Type.Unsafe<
        | Readonly<Record<string, readonly (string | number | null)[]>>
        | readonly Readonly<Record<string, string | number>>[]
      >(Type.Union([Type.Object(columns), Type.Array(Type.Object(row))])),
    },
    { title },
  );
}

const CoreMetricsView = answerOf('core', 'CoreMeasurements');
const ComputeMetricsView = answerOf('compute', 'ComputeMeasurements');
/** Columns in parallel, or a row for each measurement. */
export type MeasurementsView = Static<typeof CoreMetricsView>;

const measurementsOf = <const Kind extends NodeKind, A extends TSchema>(kind: Kind, answer: A) =>
  ({
    method: 'GET',
    path: `/api/v0/${kind}/:node_hash/metrics`,
    summary: `Measurements of one ${kind} node, of the last two weeks unless told otherwise`,
    ...reads('INVALID_HASH', 'NODE_NOT_FOUND', 'LIST_TOO_COSTLY'),
    params: NodeParams,
    query: MetricsQuery,
    answers: { 200: answer },
    deployed: { differs: 'a setting says whose measurements count; there are more columns' },
  }) as const;

const DAY_SECONDS = 86_400;
const STEPS_MAX = 400;

const HistoryQuery = Type.Object(
  {
    step: defaulted(
      Type.Integer({ minimum: 60, maximum: DAY_SECONDS, description: 'how long a part is, seconds' }),
      DAY_SECONDS,
    ),
    count: defaulted(
      Type.Integer({ minimum: 1, maximum: STEPS_MAX, description: 'how many parts, up to the present one' }),
      90,
    ),
  },
  { additionalProperties: false },
);

const MeasuredPart = Type.Object(
  {
    start: Type.Integer({ description: 'Unix seconds, a whole number of steps' }),
    measurements: Type.Integer({ description: 'how often the node was measured' }),
    answered: Type.Integer({ description: 'how often of these it answered at all' }),
    base_latency: orNull(Type.Number({ description: 'mean, seconds' })),
    versions: Type.Array(Type.String(), { description: 'that it told, each once' }),
  },
  { title: 'MeasuredPart' },
);
export type MeasuredPart = Static<typeof MeasuredPart>;

const historyOf = <const Kind extends NodeKind>(kind: Kind) =>
  ({
    method: 'GET',
    path: `/api/v0/${kind}/:node_hash/metrics/history`,
    summary: `How often a ${kind} node was measured and answered, and its versions, part by part; parts without a measurement are left out`,
    ...reads('INVALID_HASH', 'NODE_NOT_FOUND', 'LIST_TOO_COSTLY'),
    params: NodeParams,
    query: HistoryQuery,
    answers: {
      200: Type.Object(
        { step: Type.Integer(), from: Type.Integer(), history: Type.Array(MeasuredPart) },
        { title: 'MeasuredHistory' },
      ),
    },
  }) as const;

/** What trusted monitors measured of one node (specification, "Node metrics lookup"; docs/decisions.md 10). */
export const MEASUREMENTS_API = {
  getCoreMeasurements: measurementsOf('core', CoreMetricsView),
  getComputeMeasurements: measurementsOf('compute', ComputeMetricsView),
  getCoreHistory: historyOf('core'),
  getComputeHistory: historyOf('compute'),
} as const satisfies Api;
