import { zone } from '../data/settings.ts';
import { clock } from '../pure/format.ts';
import { type Bar, shareOf } from '../pure/uptime.ts';

const toneOf = (share: number | null) =>
  share === null ? 'none' : share === 1 ? 'good' : share >= 0.9 ? 'warn' : 'bad';

const percent = (share: number | null) =>
  share === null ? 'nobody looked' : `${(share * 100).toFixed(share === 1 ? 0 : 2)} %`;

/** How something was, part by part: bars to look at, a table to read. */
export function Bars({ label, bars }: { readonly label: string; readonly bars: readonly Bar[] }) {
  const share = shareOf(bars);
  return (
    <figure class="chart">
      <figcaption class="legend">
        <span>
          {label} <b>{percent(share)}</b>
        </span>
      </figcaption>
      <div class="bars" aria-hidden="true">
        {bars.map((bar) => (
          <i
            key={bar.fromMs}
            class={toneOf(bar.share)}
            title={`${clock(bar.fromMs, zone.value)}: ${percent(bar.share)}`}
          />
        ))}
      </div>
      <p class="ends muted" aria-hidden="true">
        <span>{clock(bars[0]?.fromMs ?? 0, zone.value)}</span>
        <span>now</span>
      </p>
      <details>
        <summary>as a table</summary>
        <div class="scroll">
          <table>
            <thead>
              <tr>
                <th>from</th>
                <th class="number">answered</th>
                <th class="number">times looked</th>
              </tr>
            </thead>
            <tbody>
              {bars
                .filter(({ tries }) => tries > 0)
                .toReversed()
                .map((bar) => (
                  <tr key={bar.fromMs}>
                    <td>{clock(bar.fromMs, zone.value)}</td>
                    <td class="number">{percent(bar.share)}</td>
                    <td class="number">{bar.tries}</td>
                  </tr>
                ))}
            </tbody>
          </table>
        </div>
      </details>
    </figure>
  );
}
