import { useState } from 'preact/hooks';
import type { Message } from '../../data/answers.ts';
import { type Identity, identity } from '../../data/identity.ts';
import { useNetwork } from '../../data/network.ts';
import { verify } from '../../data/workers.ts';
import { Safe } from '../../parts/basic.tsx';
import { Empty, Loaded } from '../../parts/states.tsx';
import { Lines, type OnRefused, OwnersLog, useOwnersLog } from './owner-log.tsx';

interface FollowingProps {
  readonly hash: string;
  readonly by: Identity;
  readonly onRefused: OnRefused;
}

function Following({ hash, by, onRefused }: FollowingProps) {
  const { coreUrl } = useNetwork();
  const [isOfAll, setOfAll] = useState(false);
  const read = useOwnersLog(
    `log ${hash} ${by.address} ${isOfAll}`,
    () => verify('programLogs', { coreUrl, hash, isOfAll }, { by }),
    onRefused,
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
  const me = identity.value;
  if (me?.address !== sender.toLowerCase()) return null;
  return (
    <OwnersLog title="What it wrote" show="Show its log">
      {(onRefused) => <Following hash={hash} by={me} onRefused={onRefused} />}
    </OwnersLog>
  );
}
