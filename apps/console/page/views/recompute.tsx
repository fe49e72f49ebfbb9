import { messageLink, useNetwork } from '../data/network.ts';
import { verify } from '../data/workers.ts';
import { Badge, DateTime, Facts, Hash, ProofMark, Safe } from '../parts/basic.tsx';
import { CheckedHere } from '../parts/checked-here.tsx';
import { RefusedList } from '../parts/refused-list.tsx';
import { count, latency, score } from '../pure/format.ts';
import { LATENCIES } from '../pure/history.ts';
import type { ComparedLine } from '../pure/trust/compare.ts';
import type { Recomputed } from '../workers/recompute.ts';

interface Timed {
  readonly result: Recomputed;
  readonly elapsedMs: number;
}

const Line = ({ line }: { readonly line: ComparedLine }) => (
  <tr class={line.isEqual ? '' : 'differs'}>
    <td data-title="line">
      <ProofMark of="score" kind={line.isEqual ? 'proven' : 'wrong'} label={line.name} />
    </td>
    <td class="number" data-title="as published">
      {line.published ?? '–'}
    </td>
    <td class="number" data-title="as computed here">
      {line.computed ?? '–'}
    </td>
    <td data-title="">{line.isEqual ? 'equal' : 'differs'}</td>
  </tr>
);

const Lines = ({ lines }: { readonly lines: readonly ComparedLine[] }) => (
  <div class="scroll">
    <table class="compared rows" aria-label="published and computed, line by line">
      <thead>
        <tr>
          <th>line</th>
          <th class="number">as published</th>
          <th class="number">as computed here</th>
          <th />
        </tr>
      </thead>
      <tbody>
        {lines.map((line) => (
          <Line key={line.name} line={line} />
        ))}
      </tbody>
    </table>
  </div>
);

function Verdict({ result, elapsedMs }: Timed) {
  const { isSame, lines, nodes, refused, verified } = result;
  const different = nodes.filter(({ isEqual }) => !isEqual).length;
  const own = lines.filter(({ isEqual }) => !isEqual).length;
  const reasons = [
    ...(own > 0 ? [`${own} of ${lines.length} lines of this node differ`] : []),
    ...(different > 0 ? [`${different} of ${nodes.length} nodes differ`] : []),
    ...(refused.length > 0
      ? [`${refused.length} of ${verified} measurements are not what their publisher signed`]
      : []),
    ...(result.isSameInput
      ? []
      : [
          `${count(result.publishedCount)} measurements were counted, this core node gave ${count(result.computedCount)}`,
        ]),
  ];
  return (
    <div class={`verdict ${isSame ? 'good' : 'bad'}`} data-state={isSame ? 'equal' : 'different'}>
      <p class="verdict-title">
        <span class="lamp" aria-hidden="true" />
        {isSame ? 'Equal, line by line.' : 'Not equal.'}
      </p>
      <p>
        {isSame
          ? `${count(verified)} signatures were checked and the scores of ${count(nodes.length)} ${nodes.length === 1 ? 'node' : 'nodes'} computed again in this tab, in ${(elapsedMs / 1_000).toFixed(1)} s.`
          : `${reasons.join('; ') || 'The hash of the scores is another one'}.`}
      </p>
    </div>
  );
}

const HOURS_SHOWN = 48;

function Hours({ result, kind }: { readonly result: Recomputed; readonly kind: 'core' | 'compute' }) {
  const { hours } = result;
  return (
    <details>
      <summary>{hours.length === 1 ? 'its 1 hour' : `its ${hours.length} hours`}, and what each gave</summary>
      <div class="scroll">
        <table>
          <thead>
            <tr>
              <th>hour</th>
              <th class="number">weight</th>
              {LATENCIES[kind].map(([field, name]) => (
                <th key={field} class="number">
                  {name}
                </th>
              ))}
              <th class="number">quality</th>
              <th class="number">gave</th>
              <th>version</th>
            </tr>
          </thead>
          <tbody>
            {hours.slice(0, HOURS_SHOWN).map((one) => (
              <tr key={one.hour}>
                <td>
                  <DateTime ms={one.hour * 1_000} />
                </td>
                <td class="number">{one.weight.toFixed(4)}</td>
                {LATENCIES[kind].map(([field]) => (
                  <td key={field} class="number">
                    {one.latencies[field] == null ? 'missing' : latency(one.latencies[field])}
                  </td>
                ))}
                <td class="number">{score(one.quality)}</td>
                <td class="number">{one.gained.toFixed(4)}</td>
                <td>
                  {one.version === null ? '–' : <Safe text={one.version} limit={20} />}{' '}
                  {one.isVersionValid ? null : <Badge tone="warn">too old</Badge>}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {hours.length > HOURS_SHOWN ? <p class="muted">The newest {HOURS_SHOWN} are shown.</p> : null}
    </details>
  );
}

function Result({ result, elapsedMs, kind }: Timed & { readonly kind: 'core' | 'compute' }) {
  return (
    <>
      <Verdict result={result} elapsedMs={elapsedMs} />
      <Lines lines={result.lines} />
      <RefusedList refused={result.refused} />
      <Hours result={result} kind={kind} />
      <Facts
        rows={[
          ['scores', <Hash value={result.itemHash} href={messageLink(result.itemHash)} />],
          ['signed by', <Hash value={result.publisher} />],
          ['hash as published', <Hash value={result.published} />],
          ['hash as computed', <Hash value={result.computed} />],
          [
            'not proven',
            'that the monitor measured honestly, and that this core node gave its newest scores',
          ],
        ]}
      />
    </>
  );
}

interface RecomputeProps {
  readonly nodeId: string;
  readonly kind: 'core' | 'compute';
  /** The message of the scores; undefined: there is none yet. */
  readonly scores: string | undefined;
}

/** Does the scoring in this tab, from measurements whose signatures it checks, and compares. */
export function Recompute({ nodeId, kind, scores }: RecomputeProps) {
  const { coreUrl } = useNetwork();
  const check = async (onProgress: (checked: number) => void): Promise<Timed> => {
    const startMs = performance.now();
    const result = await verify('recompute', { coreUrl, scores: scores!, nodeId }, { onProgress });
    return { result, elapsedMs: performance.now() - startMs };
  };
  return (
    <CheckedHere<Timed>
      key={nodeId}
      title="Do not take its word"
      about="A monitor published this score and signed it. This tab can do the same scoring from the signed measurements, with the code that monitors run, and compare every line."
      action="Recompute"
      acting="Recomputing"
      counted="signatures checked"
      hindrance={scores === undefined ? 'No scores were published yet.' : undefined}
      check={check}
    >
      {(timed) => <Result {...timed} kind={kind} />}
    </CheckedHere>
  );
}
