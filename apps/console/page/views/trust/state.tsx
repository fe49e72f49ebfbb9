import type { RecomputedDigest } from '@skerry/client';
import { useNetwork } from '../../data/network.ts';
import { verify } from '../../data/workers.ts';
import { Facts, Hash, ProofMark } from '../../parts/basic.tsx';
import { CheckedHere } from '../../parts/checked-here.tsx';
import { RefusedList } from '../../parts/refused-list.tsx';
import { count } from '../../pure/format.ts';
import type { RecomputedState } from '../../workers/digests.ts';

const Compared = ({ compared }: { readonly compared: RecomputedDigest }) => {
  const { said, computed, isSame, isCut } = compared;
  if (isCut)
    return (
      <>
        <ProofMark kind="said" of="digest" /> {count(said.count)}: more than are read here
      </>
    );
  return (
    <span class="stack">
      <span>
        <ProofMark of="digest" kind={isSame ? 'proven' : 'wrong'} /> {count(computed.count)}{' '}
        <Hash value={computed.digest} />
      </span>
      {isSame ? null : (
        <span class="wrong">
          the core node says {count(said.count)} <Hash value={said.digest} />
        </span>
      )}
    </span>
  );
};

const KINDS = ['posts', 'aggregates', 'credits', 'files', 'measurements', 'programs'] as const;

const TITLES = {
  same: 'As it says.',
  cut: 'As it says, as far as it was compared.',
  unchecked: 'As it says, as far as it was checked: some machines were not.',
  different: 'Not as it says.',
} as const;
const TONES = { same: 'good', cut: 'good', unchecked: 'warn', different: 'bad' } as const;
const STATES = { same: 'equal', cut: 'equal', unchecked: 'unchecked', different: 'different' } as const;

function Result({ state }: { readonly state: RecomputedState }) {
  const { messages, instances, derived, schedulers, verdict, unproven } = state;
  return (
    <>
      <div class={`verdict ${TONES[verdict]}`} data-state={STATES[verdict]}>
        <p class="verdict-title">
          <span class="lamp" aria-hidden="true" />
          {TITLES[verdict]}
        </p>
        <p>
          {count(instances.verified + derived.verified)} signed messages were checked and{' '}
          {count(instances.computed.count)} {instances.computed.count === 1 ? 'machine' : 'machines'} folded
          anew in this tab.
        </p>
      </div>
      <RefusedList refused={[...instances.refused, ...derived.refused]} />
      <Facts
        rows={[
          ['messages', <Compared compared={messages} />],
          ['machines', <Compared compared={instances} />],
          ...KINDS.map((kind) => [kind, <Compared compared={derived.kinds[kind]} />] as const),
          ...(derived.onBehalf > 0
            ? [
                [
                  'signed for others',
                  `${count(derived.onBehalf)} messages, which their owners may permit`,
                ] as const,
              ]
            : []),
          ...(unproven === undefined ? [] : [['machines of the node’s word', unproven] as const]),
          [
            'schedulers',
            <span class="stack">
              {schedulers.map((one) => (
                <Hash key={one} value={one} />
              ))}
            </span>,
          ],
          [
            'not proven',
            'that the lists are those of the network: other nodes say whether they have the same',
          ],
        ]}
      />
    </>
  );
}

/** Computes in this tab what the core node says of all that it has. */
export function StatePanel() {
  const { coreUrl, info } = useNetwork();
  const trust = {
    schedulers: info?.trust.schedulers.value ?? [],
    creditPublishers: info?.trust.credit_publishers.value ?? [],
    scoringPublishers: info?.trust.scoring_publishers.value ?? [],
  };
  return (
    <CheckedHere<RecomputedState>
      title="All that it has"
      about="Digests stand for all messages, all machines, and what posts, aggregates, credits, files, measurements and programs follow from. This tab reads the lists, checks signatures, folds all of it anew, and computes the digests."
      action="Compute anew"
      acting="Computing"
      counted="lines read"
      check={(onProgress) => verify('state', { coreUrl, trust }, { onProgress })}
    >
      {(state) => <Result state={state} />}
    </CheckedHere>
  );
}
