import { showCredits } from '@skerry/protocol/credit/shown';
import { useNetwork } from '../data/network.ts';
import { verify } from '../data/workers.ts';
import { Facts, Hash, ProofMark } from '../parts/basic.tsx';
import { CheckedHere } from '../parts/checked-here.tsx';
import { RefusedList } from '../parts/refused-list.tsx';
import { addedUpState } from '../pure/credits.ts';
import { count } from '../pure/format.ts';
import type { AddedUp } from '../workers/account.ts';

const STATES = {
  equal: { tone: 'good', title: 'Equal, to a billionth of a credit.', mark: 'proven' },
  different: { tone: 'bad', title: 'Not equal.', mark: 'wrong' },
  cut: { tone: '', title: 'More lines than can be added up here.', mark: 'said' },
} as const;

function sentenceOf(result: AddedUp): string {
  const { verified, refused, listed, computed, said } = result;
  const state = addedUpState(result);
  if (state === 'equal')
    return `${count(verified)} signed messages were checked in this tab; what they say of this account adds up to the balance.`;
  if (state === 'cut')
    return `${count(verified)} signed messages were checked in this tab, and each is what a credit publisher signed. Without the older ones they say nothing of the balance.`;
  return [
    ...(refused.length > 0
      ? [`${refused.length} of ${verified} messages are not what a credit publisher signed`]
      : []),
    ...(computed === said
      ? []
      : [`the ${count(listed)} lines that this core node lists add up to another balance`]),
  ].join('; ');
}

function Result({ result }: { readonly result: AddedUp }) {
  const { isCut, refused, publishers } = result;
  const state = addedUpState(result);
  const { tone, title, mark } = STATES[state];
  return (
    <>
      <div class={`verdict ${tone}`} data-state={state}>
        <p class="verdict-title">
          <span class="lamp" aria-hidden="true" />
          {title}
        </p>
        <p>{sentenceOf(result)}</p>
        {isCut ? (
          <p class="muted">The account has more lines than are read here: older ones are missing.</p>
        ) : null}
      </div>
      <RefusedList refused={refused} />
      <Facts
        rows={[
          ['the core node says', <>{showCredits(BigInt(result.said))} credits</>],
          [
            'added up here',
            <>
              <ProofMark kind={result.said === result.computed ? 'proven' : mark} of="balance" />{' '}
              {showCredits(BigInt(result.computed))} credits
            </>,
          ],
          [
            'credit publishers',
            <span class="stack">
              {publishers.map((one) => (
                <Hash key={one} value={one} />
              ))}
            </span>,
          ],
          [
            'not proven',
            'that this core node lists every message, and that the publishers are the ones you would believe',
          ],
        ]}
      />
    </>
  );
}

/** Adds up in this tab what credit publishers signed of an account. */
export function AddUp({ address }: { readonly address: string }) {
  const { coreUrl, info } = useNetwork();
  const publishers = info?.trust.credit_publishers.value ?? [];
  return (
    <CheckedHere<AddedUp>
      title="Do not take its word"
      about="Every change of a balance is a message that a credit publisher signed. This tab can check each of them and add them up, by the rules that core nodes follow."
      action="Add up"
      acting="Adding up"
      counted="signatures checked"
      check={(onProgress) => verify('account', { coreUrl, address, publishers }, { onProgress })}
    >
      {(result) => <Result result={result} />}
    </CheckedHere>
  );
}
