import { useLive } from '../data/live.ts';
import { useEventCount, useInstances, useMetrics, useSchedulerNodes, useScores } from '../data/questions.ts';
import { Stat, Time } from '../parts/basic.tsx';
import { Spark } from '../parts/chart.tsx';
import { count, score } from '../pure/format.ts';
import { phasesText } from '../pure/nodes.ts';
import { linkTo } from '../pure/route.ts';

function LiveStat() {
  const { status, perSecond, why } = useLive();
  const metrics = useMetrics();
  const recent = perSecond.slice(-10);
  const mean = recent.length === 0 ? 0 : recent.reduce((sum, one) => sum + one, 0) / recent.length;
  const total = metrics.value?.pyaleph_status_sync_messages_total;
  return (
    <Stat
      label="Messages a second"
      value={status === 'live' ? (mean >= 10 ? count(mean) : mean.toFixed(1)) : '–'}
      note={
        status === 'lost'
          ? `not live: ${why ?? 'lost'}`
          : total == null
            ? 'mean of 10 s'
            : `${count(total)} in force`
      }
      href={linkTo(['messages'])}
    >
      <Spark
        values={perSecond.length > 0 ? perSecond : [0, 0]}
        label="messages in each second of the last minute"
      />
    </Stat>
  );
}

/** How many events the core node has told, and how many come now. */
function EventsStat() {
  const latest = useEventCount();
  const { status } = useLive();
  return (
    <Stat
      label="Events"
      value={latest.value === undefined ? '–' : count(Number(latest.value.next_cursor))}
      note={latest.failure?.message ?? (status === 'live' ? 'followed live' : 'told so far')}
      href={linkTo(['messages'])}
    />
  );
}

/** Archives on a chain, by which messages are confirmed: how far the core node has read them. */
function ChainStat() {
  const { value, failure } = useMetrics();
  const height = value?.pyaleph_status_chain_eth_last_committed_height;
  const behind = value?.pyaleph_status_chain_eth_height_remaining_total;
  return (
    <Stat
      label="Archives, to block"
      value={height == null ? '–' : count(height)}
      note={
        value === undefined
          ? (failure?.message ?? 'asking')
          : height == null
            ? 'it reads no chain'
            : behind
              ? `${count(behind)} ${behind === 1 ? 'block' : 'blocks'} behind`
              : 'up to date'
      }
      href={linkTo(['indexer'])}
    />
  );
}

/** The numbers of a network that matter, and how they go on. */
export function Stats() {
  const [nodes, instances, scores] = [useSchedulerNodes(), useInstances(), useScores()];
  const healthy = nodes.value?.nodes.filter((one) => one.healthy).length;
  const total = instances.value?.pagination.total;
  const [newest] = scores.value?.messages ?? [];
  const all = [...scores.counting.core, ...scores.counting.compute];
  const mean = all.length === 0 ? null : all.reduce((sum, one) => sum + one.total_score, 0) / all.length;
  return (
    <div class="stats six">
      <LiveStat />
      <Stat
        label="Compute nodes"
        value={nodes.value ? `${healthy}/${nodes.value.nodes.length}` : '–'}
        note={
          nodes.value
            ? 'take new machines'
            : nodes.isKnown
              ? (nodes.failure?.message ?? 'asking')
              : 'no scheduler is known'
        }
        href={linkTo(['nodes'])}
      />
      <Stat
        label="Machines"
        value={total === undefined ? '–' : count(total)}
        note={
          instances.value
            ? phasesText(
                instances.value.instances.map(({ phase }) => phase),
                instances.value.pagination.total,
              )
            : (instances.failure?.message ?? 'asking')
        }
        href={linkTo(['machines'])}
      />
      <Stat
        label="Mean score"
        value={score(mean)}
        note={newest ? <Time ms={newest.time * 1_000} /> : scores.value ? 'no scores yet' : 'asking'}
        href={linkTo(['nodes'])}
      />
      <EventsStat />
      <ChainStat />
    </div>
  );
}
