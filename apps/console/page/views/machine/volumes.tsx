import { readWholeMessages } from '../../data/answers.ts';
import { messageLink, useNetwork } from '../../data/network.ts';
import { useProof } from '../../data/prove.ts';
import { useCore } from '../../data/questions.ts';
import { Hash, Panel, ProofMark, Safe } from '../../parts/basic.tsx';
import { mebibytes } from '../../pure/format.ts';
import { isUnchecked } from '../../pure/trust/unchecked.ts';
import { type Volume, volumesOf } from '../../pure/volumes.ts';

const SELDOM_MS = 60_000;
const SHOWN = 50;
const KINDS = {
  file: 'a file, to be read',
  kept: 'kept with its disk',
  passing: 'empty whenever it starts',
} as const;

const Line = ({ volume: { kind, mount, name, sizeMib, file } }: { readonly volume: Volume }) => (
  <li>
    <span class="grow stack">
      <span>
        <Safe text={mount ?? name ?? 'without a name'} limit={80} />
      </span>
      <span class="muted">
        {KINDS[kind]}
        {file === null ? null : (
          <>
            {kind === 'kept' ? ', begun as ' : ' '}
            <Hash value={file} href={messageLink(file)} />
          </>
        )}
      </span>
    </span>
    <span class="muted">{sizeMib === null ? '' : mebibytes(sizeMib)}</span>
  </li>
);

/** What a machine has beside its disk, as its owner signed it. Nothing where that is nothing. */
export function MachineVolumes({ id }: { readonly id: string }) {
  const { coreUrl } = useNetwork();
  const asked = useCore(`/api/v0/messages.json?hashes=${id}&bodies=shared`, readWholeMessages, SELDOM_MS);
  const rows = asked.value?.messages ?? [];
  const proof = useProof('messages', rows.length === 0 ? undefined : { coreUrl, rows });
  const volumes = rows.flatMap(({ content }) => volumesOf(content));
  if (volumes.length === 0) return null;
  const failures = proof.kind === 'proven' ? proof.value.flatMap(({ failure }) => failure ?? []) : [];
  const isWrong = failures.some((failure) => !isUnchecked(failure));
  return (
    <Panel
      title="Its volumes"
      aside={
        <ProofMark
          of="message"
          message={id}
          kind={
            isWrong
              ? 'wrong'
              : proof.kind === 'failed' || failures.length > 0
                ? 'said'
                : proof.kind === 'waiting'
                  ? 'waiting'
                  : 'proven'
          }
          label="as its owner signed"
        />
      }
    >
      <ul class="lines">
        {volumes.slice(0, SHOWN).map((volume, at) => (
          <Line key={String(at)} volume={volume} />
        ))}
        {volumes.length > SHOWN ? <li class="muted">and {volumes.length - SHOWN} more</li> : null}
      </ul>
    </Panel>
  );
}
