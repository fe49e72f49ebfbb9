import { useState } from 'preact/hooks';
import type { Message } from '../../data/answers.ts';
import { type Failure, failureOf } from '../../data/failure.ts';
import { type Identity, identity } from '../../data/identity.ts';
import { useNetwork } from '../../data/network.ts';
import { useResource } from '../../data/resource.ts';
import { verify } from '../../data/workers.ts';
import { Panel, ProofMark, Safe } from '../../parts/basic.tsx';
import { Empty, Failed, Loaded } from '../../parts/states.tsx';
import { Lines } from './machine-logs.tsx';

const OFTEN_MS = 3_000;

interface FollowingProps {
  readonly hash: string;
  readonly by: Identity;
  /** The owner did not sign: it is not asked again by itself. */
  readonly onRefused: (failure: Failure) => void;
}

function Following({ hash, by, onRefused }: FollowingProps) {
  const { coreUrl } = useNetwork();
  const [isOfAll, setOfAll] = useState(false);
  const read = useResource(
    `log ${hash} ${by.address} ${isOfAll}`,
    async () => {
      try {
        return await verify('programLogs', { coreUrl, hash, isOfAll }, { by });
      } catch (error) {
        const failure = failureOf(error);
        if (failure.code === 'SIGNATURE_REQUIRED') onRefused(failure);
        throw error;
      }
    },
    OFTEN_MS,
  );
  return (
    <>
      <Loaded from={read}>
        {(logs) =>
          logs.length === 0 ? (
            <Empty title="No node has run it since the node started." />
          ) : (
            logs.map(({ nodeAddress, url, lines }) => (
              <div key={nodeAddress} data-log={nodeAddress}>
                <p class="muted">
                  On the node <Safe text={url} limit={100} />
                </p>
                <Lines lines={lines} none="It has written nothing." />
              </div>
            ))
          )
        }
      </Loaded>
      {isOfAll ? null : (
        <div class="actions">
          <button type="button" class="plain" onClick={() => setOfAll(true)}>
            Ask the next nodes, too
          </button>
          <span class="muted">
            The first that ran it is asked; calls go on to the next two where it cannot. You sign for each.
          </span>
        </div>
      )}
    </>
  );
}

/** What a program wrote, for its owner. */
export function ProgramLogs({ message: { item_hash: hash, sender } }: { readonly message: Message }) {
  const [isWanted, setWanted] = useState(false);
  const [refused, setRefused] = useState<Failure>();
  const me = identity.value;
  if (me?.address !== sender.toLowerCase()) return null;
  return (
    <Panel
      title="What it wrote"
      wide
      aside={<ProofMark kind="said" of="nodeWord" label="its node, to its owner" />}
    >
      {isWanted ? (
        <Following
          hash={hash}
          by={me}
          onRefused={(failure) => {
            setRefused(failure);
            setWanted(false);
          }}
        />
      ) : (
        <div class="actions">
          <button type="button" class="plain" onClick={() => setWanted(true)}>
            Show its log
          </button>
          <span class="muted">You sign once an hour that this tab may ask its node.</span>
        </div>
      )}
      {refused && !isWanted ? <Failed failure={refused} /> : null}
    </Panel>
  );
}
