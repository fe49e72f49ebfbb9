import { showCredits } from '@skerry/protocol/credit/shown';
import { useNetwork } from '../data/network.ts';
import { verify } from '../data/workers.ts';
import { Facts, Hash, ProofMark } from '../parts/basic.tsx';
import { CheckedHere } from '../parts/checked-here.tsx';
import { RefusedList } from '../parts/refused-list.tsx';
import { count } from '../pure/format.ts';
import type { AddedUp } from '../workers/account.ts';

const sentenceOf = ({ isSame, verified, refused, listed, computed, said }: AddedUp) =>
  isSame
    ? `${count(verified)} signed messages were checked in this tab; what they say of this account adds up to the balance.`
    : [
        ...(refused.length > 0
          ? [`${refused.length} of ${verified} messages are not what a credit publisher signed`]
          : []),
        ...(computed === said
          ? []
          : [`the ${count(listed)} lines that this core node lists add up to another balance`]),
      ].join('; ');

function Result({ result }: { readonly result: AddedUp }) {
  const { isSame, isCut, refused, publishers } = result;
  return (
    <>
      <div class={`verdict ${isSame ? 'good' : 'bad'}`} data-state={isSame ? 'equal' : 'different'}>
        <p class="verdict-title">
          <span class="lamp" aria-hidden="true" />
          {isSame ? 'Equal, to a billionth of a credit.' : 'Not equal.'}
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
              <ProofMark kind={result.said === result.computed ? 'proven' : 'wrong'} of="balance" />{' '}
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
