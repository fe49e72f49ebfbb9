import { useState } from 'preact/hooks';
import type { Message } from '../../data/answers.ts';
import { useNetwork } from '../../data/network.ts';
import { verify } from '../../data/workers.ts';
import { Facts, Hash, ProofMark, Safe } from '../../parts/basic.tsx';
import { CheckedHere } from '../../parts/checked-here.tsx';
import { Field, Form } from '../../parts/form.tsx';
import { count } from '../../pure/format.ts';
import type { Tasks } from '../../workers/tasks.ts';

/** The endpoint that the reader believes of a chain; it stays in this browser. */
const keyOf = (chain: string) => `skerry.rpc.${chain}`;

type Found = Tasks['onChain']['answer'];

const Result = ({ found, rpcUrl }: { readonly found: Found; readonly rpcUrl: string }) => {
  const { blockHash, depth, contract, emitter, cid, isArchiveProven } = found;
  return (
    <>
      <div class="verdict good" data-state="chained">
        <p class="verdict-title">
          <span class="lamp" aria-hidden="true" />
          On the chain, as this endpoint of it says.
        </p>
      </div>
      <Facts
        rows={[
          ['block', <Hash value={blockHash} />],
          ['blocks above it', count(depth)],
          ['contract', <Hash value={contract} />],
          ['emitted by', <Hash value={emitter} />],
          [
            'archive',
            cid === null ? (
              'in the event itself'
            ) : (
              <>
                <ProofMark kind={isArchiveProven ? 'proven' : 'said'} of="confirmation" />{' '}
                <Hash value={cid} />
              </>
            ),
          ],
          [
            'the message in it',
            <ProofMark
              of="confirmation"
              kind={isArchiveProven ? 'proven' : 'said'}
              label={isArchiveProven ? 'found' : 'as the core node gives the archive'}
            />,
          ],
          [
            'not proven',
            <>
              that <Safe text={rpcUrl} limit={80} /> tells the truth of its chain, and that the emitter is one
              of this network. With few blocks above it, a block may still be replaced
            </>,
          ],
        ]}
      />
    </>
  );
};

/** Asks an endpoint that the reader chose whether the chain has what confirms a message. */
export function OnChain({ message }: { readonly message: Message }) {
  const { coreUrl } = useNetwork();
  const [confirmation] = message.confirmations;
  const chain = confirmation?.chain ?? '';
  const [rpcUrl, setUrl] = useState(() => localStorage.getItem(keyOf(chain)) ?? '');
  if (!confirmation) return null;
  const { height, hash } = confirmation;
  const keep = (typed: string) => {
    setUrl(typed);
    if (typed === '') localStorage.removeItem(keyOf(chain));
    else localStorage.setItem(keyOf(chain), typed);
  };
  const asked = { coreUrl, rpcUrl, hash: message.item_hash, confirmation: { height, hash } };
  return (
    <CheckedHere<Found>
      key={rpcUrl}
      title="Is it on the chain?"
      about="An endpoint of the chain that you choose is asked for the transaction, and this tab looks for the message in the archive that the transaction names."
      action="Look at the chain"
      acting="Looking"
      counted="archives read"
      hindrance={rpcUrl === '' ? 'Name an endpoint of the chain first.' : undefined}
      before={
        <Form label="Endpoint" button="Use it" onSend={({ rpc = '' }) => keep(rpc.trim())}>
          <Field name="rpc" label={`JSON-RPC of the chain ${chain}`} value={rpcUrl} isWide />
        </Form>
      }
      check={() => verify('onChain', asked)}
    >
      {(found) => <Result found={found} rpcUrl={rpcUrl} />}
    </CheckedHere>
  );
}
