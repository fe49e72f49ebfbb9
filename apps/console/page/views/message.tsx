import { type Message, readMessage } from '../data/answers.ts';
import { machineLink, messageLink, useNetwork } from '../data/network.ts';
import { type Proof, useProof } from '../data/prove.ts';
import { useCore } from '../data/questions.ts';
import { useStatusAgreement } from '../data/trust/agree.ts';
import type { MarkKind } from '../data/trust/mark-kinds.ts';
import { Agreed } from '../parts/agreed.tsx';
import { Badge, DateTime, Facts, Hash, Panel, ProofMark, Safe, Time } from '../parts/basic.tsx';
import { Json } from '../parts/json.tsx';
import { Lazy } from '../parts/lazy.tsx';
import { Loaded } from '../parts/states.tsx';
import { namedIn } from '../pure/named.ts';
import { linkTo } from '../pure/route.ts';
import { isUnchecked, verdictOn } from '../pure/trust/unchecked.ts';
import type { ProvenMessage } from '../workers/messages.ts';

const TONES = { processed: 'good', pending: 'warn', rejected: 'bad', forgotten: 'plain' } as const;
const toneOf = (status: string) => (status in TONES ? TONES[status as keyof typeof TONES] : 'plain');

const VERDICTS = {
  proven: { tone: 'good', title: 'Signed by its sender, as it is shown.' },
  refuted: { tone: 'bad', title: 'Not what its sender signed.' },
  gone: { tone: '', title: 'Forgotten: its text is gone, and with it the proof.' },
  unchecked: { tone: 'warn', title: 'It could not be checked yet.' },
} as const;

function Verdict({ message, proof }: { readonly message: Message; readonly proof: Proof<ProvenMessage> }) {
  const state = verdictOn(proof, message.status);
  if (state === 'waiting')
    return (
      <div class="verdict">
        <ProofMark
          kind="waiting"
          of="message"
          message={message.item_hash}
          label="checking the signature in this tab"
        />
      </div>
    );
  const contradictions = proof.kind === 'proven' ? proof.value.contradictions : [];
  const { tone, title } = VERDICTS[state];
  return (
    <div class={`verdict ${tone}`} data-state={state}>
      <p class="verdict-title">
        <span class="lamp" aria-hidden="true" />
        {title}
      </p>
      {proof.kind === 'failed' && state !== 'gone' ? (
        <p>
          <Safe text={proof.failure.message} /> <code>{proof.failure.code}</code>
        </p>
      ) : null}
      {contradictions.map(({ name, said, signed }) => (
        <p key={name}>
          <ProofMark kind="wrong" of="message" message={message.item_hash} label={name} />: the core node says{' '}
          <Safe text={said} limit={300} />, signed was <Safe text={signed} limit={300} />
        </p>
      ))}
      {state === 'proven' ? (
        <p class="muted">Hash and signature were computed in this tab, from the text below.</p>
      ) : null}
      {proof.kind === 'proven' && proof.value.form === 'upload' ? (
        <p class="muted">
          Signed is the hash of the file; when it was sent, and what else is said of it, is the core node's
          word.
        </p>
      ) : null}
    </div>
  );
}

const DelegationFact = ({ of }: { readonly of: NonNullable<ProvenMessage['delegation']> }) => {
  const { owner, grantedBy, refusal, refused, isCut } = of;
  const [first] = refused;
  const isOpen = isCut && grantedBy === null;
  return (
    <span class="stack">
      <span>
        <ProofMark
          kind={first ? 'wrong' : isOpen ? 'said' : refusal ? 'wrong' : 'proven'}
          of="delegation"
          message={grantedBy ?? undefined}
        />{' '}
        <Hash value={owner} href={linkTo(['messages'], { sender: owner })} />
      </span>
      {isOpen ? (
        <span class="muted">the owner signed more of who may than is read here</span>
      ) : refusal ? (
        <span class="wrong">
          {refusal.kind === 'revoked'
            ? 'the owner took the permission back within ten minutes'
            : 'nothing that the owner signed, and this core node lists, permits it'}
        </span>
      ) : null}
      {first ? (
        <span class="wrong">
          <Safe text={first.message} limit={200} />
        </span>
      ) : null}
      {grantedBy === null ? null : (
        <span class="muted">
          <a href={messageLink(grantedBy)}>what the owner signed of who may</a>; that nothing newer says
          otherwise is the core node's word
        </span>
      )}
    </span>
  );
};

function SaidPanel({ message, proof }: { readonly message: Message; readonly proof: Proof<ProvenMessage> }) {
  const proven = proof.kind === 'proven' ? proof.value : undefined;
  const isWrong = (name: string) => proven?.contradictions.some((one) => one.name === name);
  const isOpen = proof.kind === 'failed' && isUnchecked(proof.failure);
  const markOf = (name: string): MarkKind =>
    proof.kind === 'waiting' ? 'waiting' : isOpen ? 'said' : !proven || isWrong(name) ? 'wrong' : 'proven';
  const marked = (name: string, value: preact.ComponentChildren) => (
    <>
      <ProofMark kind={markOf(name)} of="message" /> {value}
    </>
  );
  const channel = proven?.channel ?? message.channel;
  const isUpload = proven?.form === 'upload';
  return (
    <Panel title="What was signed">
      <Facts
        rows={[
          ['hash', marked('hash', <Hash value={message.item_hash} />)],
          [
            'sender',
            marked(
              'sender',
              <Hash
                value={proven?.sender ?? message.sender}
                href={linkTo(['messages'], { sender: message.sender })}
              />,
            ),
          ],
          ...(proven?.delegation ? [['signed for', <DelegationFact of={proven.delegation} />] as const] : []),
          ['type', marked('type', <Safe text={proven?.type ?? message.type} limit={64} />)],
          [
            'time',
            <>
              <ProofMark kind={isUpload ? 'said' : markOf('time')} of="message" />{' '}
              <DateTime ms={(proven?.time ?? message.timestamp) * 1_000} />
            </>,
          ],
          [
            'channel',
            <>
              <ProofMark
                of="message"
                kind={proof.kind === 'waiting' ? 'waiting' : proven?.form === 'envelope' ? 'proven' : 'said'}
              />{' '}
              {channel === null ? 'none' : <Safe text={channel} limit={64} />}
            </>,
          ],
          ['form', proven ? proven.form : '–'],
        ]}
      />
    </Panel>
  );
}

const Confirmations = ({ message }: { readonly message: Message }) =>
  message.confirmations.length === 0 ? (
    <>no chain has confirmed it</>
  ) : (
    <span class="stack">
      {message.confirmations.map(({ chain, height, hash }) => (
        <span key={hash}>
          <Safe text={chain} limit={16} /> {height} <Hash value={hash} />
        </span>
      ))}
    </span>
  );

function WordPanel({ message }: { readonly message: Message }) {
  const { coreUrl } = useNetwork();
  const { agreement } = useStatusAgreement(message.item_hash);
  return (
    <Panel
      title="What the core node says of it"
      aside={
        <ProofMark kind="said" of="coreWord" source={`${coreUrl}/api/v0/messages/${message.item_hash}`} />
      }
    >
      <Facts
        rows={[
          [
            'status',
            <span class="stack">
              <span>
                <Badge tone={toneOf(message.status)}>{message.status}</Badge> <Agreed agreement={agreement} />
              </span>
              {agreement?.others.map(({ url, said }) => (
                <span key={url} class="wrong">
                  <Safe text={url} limit={80} />: <Safe text={said ?? ''} limit={32} />
                </span>
              ))}
            </span>,
          ],
          ...(message.reason
            ? [
                [
                  'why',
                  <>
                    <Safe text={message.reason.message} /> <code>{message.reason.code}</code>
                  </>,
                ] as const,
              ]
            : []),
          [
            'received',
            message.reception_time === null ? '–' : <Time ms={Date.parse(message.reception_time)} />,
          ],
          ['confirmed', <Confirmations message={message} />],
          ...(message.forgotten_by?.length
            ? [
                [
                  'forgotten by',
                  message.forgotten_by
                    .slice(0, 5)
                    .map((one) => <Hash key={one} value={one} href={messageLink(one)} />),
                ] as const,
              ]
            : []),
          ...(message.type === 'INSTANCE'
            ? [['makes', <a href={machineLink(message.item_hash)}>its machine</a>] as const]
            : []),
        ]}
      />
    </Panel>
  );
}

/** What it names: messages, files, machines, nodes, whichever they are. */
function NamesPanel({ content, own }: { readonly content: unknown; readonly own: string }) {
  const named = namedIn(content).filter((hash) => hash !== own);
  return named.length === 0 ? null : (
    <Panel title="What it names">
      <ul class="lines">
        {named.map((hash) => (
          <li key={hash}>
            <Hash value={hash} href={messageLink(hash)} />
          </li>
        ))}
      </ul>
    </Panel>
  );
}

/** One message: what was signed, proven here, and what the core node says of it. */
export function MessagePage({ hash }: { readonly hash: string }) {
  const { coreUrl } = useNetwork();
  const asked = useCore(`/api/v0/messages/${encodeURIComponent(hash)}`, readMessage, 15_000);
  const proof = useProof('message', asked.value ? { coreUrl, hash: asked.value.item_hash } : undefined);
  return (
    <>
      <p class="crumbs">
        <a href={linkTo(['messages'])}>Messages</a>
      </p>
      <h1 class="title">
        Message <Hash value={hash} />
      </h1>
      <Loaded from={asked} lines={6}>
        {(message) => {
          const content = proof.kind === 'proven' ? proof.value.content : message.content;
          const text = proof.kind === 'proven' ? proof.value.text : null;
          return (
            <>
              <Verdict message={message} proof={proof} />
              <div class="panels">
                <SaidPanel message={message} proof={proof} />
                <WordPanel message={message} />
                {message.confirmations.length === 0 ? null : (
                  <Lazy
                    load={() => import('./later.tsx')}
                    show={({ OnChain }) => <OnChain message={message} />}
                  />
                )}
                <Panel title="Content" wide>
                  <Json value={content} />
                  {text === null ? null : (
                    <details>
                      <summary>the text that was signed, byte by byte</summary>
                      <Json value={text} />
                    </details>
                  )}
                </Panel>
                <NamesPanel content={content} own={message.item_hash} />
              </div>
            </>
          );
        }}
      </Loaded>
    </>
  );
}
