import type { RecomputedDigest } from '@skerry/client';
import { useNetwork } from '../../data/network.ts';
import { verify } from '../../data/workers.ts';
import { Facts, Hash, Mark } from '../../parts/basic.tsx';
import { CheckedHere } from '../../parts/checked-here.tsx';
import { RefusedList } from '../../parts/refused-list.tsx';
import { count } from '../../pure/format.ts';
import type { RecomputedState } from '../../workers/digests.ts';

const Compared = ({ compared }: { readonly compared: RecomputedDigest }) => {
  const { said, computed, isSame, isCut } = compared;
  if (isCut)
    return (
      <>
        <Mark kind="said" /> {count(said.count)}: more than are read here
      </>
    );
  return (
    <span class="stack">
      <span>
        <Mark kind={isSame ? 'proven' : 'wrong'} /> {count(computed.count)} <Hash value={computed.digest} />
      </span>
      {isSame ? null : (
        <span class="wrong">
          the core node says {count(said.count)} <Hash value={said.digest} />
        </span>
      )}
    </span>
  );
};

const isRight = ({ messages, instances }: RecomputedState) =>
  (messages.isSame || messages.isCut) &&
  (instances.isSame || instances.isCut) &&
  instances.refused.length === 0;

function Result({ state }: { readonly state: RecomputedState }) {
  const { messages, instances, schedulers } = state;
  const isGood = isRight(state);
  return (
    <>
      <div class={`verdict ${isGood ? 'good' : 'bad'}`} data-state={isGood ? 'equal' : 'different'}>
        <p class="verdict-title">
          <span class="lamp" aria-hidden="true" />
          {isGood ? 'As it says.' : 'Not as it says.'}
        </p>
        <p>
          {count(instances.verified)} signed messages were checked and {count(instances.computed.count)}{' '}
          {instances.computed.count === 1 ? 'machine' : 'machines'} folded anew in this tab.
        </p>
      </div>
      <RefusedList refused={instances.refused} />
      <Facts
        rows={[
          ['messages', <Compared compared={messages} />],
          ['machines', <Compared compared={instances} />],
          ...(instances.unproven > 0
            ? [
                [
                  'the node’s word',
                  `${count(instances.unproven)} machines, whose messages are too long or not their owner's`,
                ] as const,
              ]
            : []),
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
            'that each message of the list was signed, and that the lists are those of the network: other nodes say whether they have the same',
          ],
        ]}
      />
    </>
  );
}

/** Computes in this tab what the core node says of all that it has. */
export function StatePanel() {
  const { coreUrl, info } = useNetwork();
  const schedulers = info?.trust.schedulers.value ?? [];
  return (
    <CheckedHere<RecomputedState>
      title="All that it has"
      about="A digest stands for all messages, another one for all machines. This tab reads the lists, folds every machine out of its signed messages, and computes both anew."
      action="Compute anew"
      acting="Computing"
      counted="lines read"
      check={(onProgress) => verify('state', { coreUrl, schedulers }, { onProgress })}
    >
      {(state) => <Result state={state} />}
    </CheckedHere>
  );
}
