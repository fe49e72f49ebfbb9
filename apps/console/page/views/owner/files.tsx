import { useRef, useState } from 'preact/hooks';
import { act } from '../../data/act.ts';
import { useAction } from '../../data/action.ts';
import { readWholeMessages, type WholeMessage } from '../../data/answers.ts';
import { type Failure, failureOf } from '../../data/failure.ts';
import { identity } from '../../data/identity.ts';
import { messageLink, useNetwork } from '../../data/network.ts';
import { useProof } from '../../data/prove.ts';
import { useCore } from '../../data/questions.ts';
import { verify } from '../../data/workers.ts';
import { Hash, Meter, Panel, ProofMark, Safe, Time } from '../../parts/basic.tsx';
import { Empty, Failed, Loaded } from '../../parts/states.tsx';
import { bytes } from '../../pure/format.ts';
import { costText, type Quote } from '../../pure/owner/cost.ts';
import { fields, maybe, number, text } from '../../pure/read.ts';
import { NeedKey } from './need-key.tsx';

/** A file that somebody dropped here. */
interface Dropped {
  readonly id: number;
  readonly file: File;
}

type Going =
  | { readonly kind: 'waiting' }
  /** Hashed from 0 to 1, sent from 1 to 2. */
  | { readonly kind: 'going'; readonly done: number }
  | {
      readonly kind: 'done';
      readonly itemHash: string;
      readonly fileHash: string;
      readonly wasThere: boolean;
      readonly hadBytes: number;
    }
  | { readonly kind: 'failed'; readonly failure: Failure };

function Progress({ going, size }: { readonly going: Going; readonly size: number }) {
  if (going.kind !== 'going') return null;
  const isHashing = going.done < 1;
  const part = isHashing ? going.done : going.done - 1;
  return (
    <Meter
      label={isHashing ? 'hashing it in this tab' : part === 0 ? 'waiting for your signature' : 'sending it'}
      taken={part * 0.799}
      total={0.8}
      text={`${bytes(part * size)} of ${bytes(size)}`}
    />
  );
}

const Result = ({ going }: { readonly going: Going }) => {
  const { coreUrl } = useNetwork();
  if (going.kind === 'failed') return <Failed failure={going.failure} />;
  if (going.kind !== 'done') return null;
  return (
    <p class="foreseen" data-state="stored">
      <ProofMark kind="proven" of="file" message={going.itemHash} label="SHA-256, computed in this tab" />
      <Hash value={going.fileHash} href={`${coreUrl}/api/v0/storage/raw/${going.fileHash}`} />
      <span class="muted">kept by</span>
      <Hash value={going.itemHash} href={messageLink(going.itemHash)} />
      {going.wasThere ? (
        <span class="muted">The node had its bytes: nothing was sent again.</span>
      ) : going.hadBytes === 0 ? null : (
        <span class="muted" data-had={going.hadBytes}>
          The node had {bytes(going.hadBytes)} of it: only the rest was sent.
        </span>
      )}
    </p>
  );
};

function costPart(cost: Quote): string {
  if (cost === null) return '';
  return cost === 'untold' ? ', at a price that the core node does not say' : `, costs ${costText(cost)}`;
}

function FileLine({ file }: { readonly file: File }) {
  const { coreUrl } = useNetwork();
  const [going, setGoing] = useState<Going>({ kind: 'waiting' });
  const quoted = useProof('quote', { coreUrl, priced: { type: 'file', bytes: file.size } });
  const cost = quoted.kind === 'proven' ? quoted.value : null;
  const begin = async () => {
    setGoing({ kind: 'going', done: 0 });
    try {
      const stored = await verify(
        'upload',
        { coreUrl, file },
        { by: identity.value, onProgress: (done) => setGoing({ kind: 'going', done }) },
      );
      setGoing({ kind: 'done', ...stored });
    } catch (error) {
      setGoing({ kind: 'failed', failure: failureOf(error) });
    }
  };
  return (
    <li class="file">
      <span class="grow stack">
        <b>
          <Safe text={file.name} limit={80} />
        </b>
        <span class="muted">
          {bytes(file.size)}
          {costPart(cost)}
        </span>
      </span>
      {going.kind === 'waiting' || going.kind === 'failed' ? (
        <button type="button" class="primary" disabled={!identity.value} onClick={() => void begin()}>
          {going.kind === 'failed' ? 'Try again' : 'Sign and send'}
        </button>
      ) : null}
      <div class="file-state" role="status">
        <Progress going={going} size={file.size} />
        <Result going={going} />
      </div>
    </li>
  );
}

/** Where files are dropped, or chosen. */
function Drop({ onFiles }: { readonly onFiles: (files: readonly File[]) => void }) {
  const [isOver, setOver] = useState(false);
  const chooser = useRef<HTMLInputElement>(null);
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the button inside does the same with a keyboard
    <div
      class={isOver ? 'drop over' : 'drop'}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        onFiles([...(event.dataTransfer?.files ?? [])]);
      }}
    >
      <p>Drop files here, or</p>
      <input
        ref={chooser}
        type="file"
        multiple
        class="unseen"
        tabIndex={-1}
        aria-label="files"
        onChange={({ currentTarget }) => {
          onFiles([...(currentTarget.files ?? [])]);
          currentTarget.value = '';
        }}
      />
      <button type="button" class="plain" onClick={() => chooser.current?.click()}>
        choose them
      </button>
    </div>
  );
}

const readStore = fields({ item_hash: text, size: maybe(number) });

function KeptFile({ message }: { readonly message: WholeMessage }) {
  const { coreUrl } = useNetwork();
  const doing = useAction(() => act({ kind: 'forget', hashes: [message.item_hash] }));
  const { item_hash: hash, size } = readStore(message.content, 'the file');
  return (
    <li>
      <span class="whole">
        <Hash value={hash} href={`${coreUrl}/api/v0/storage/raw/${encodeURIComponent(hash)}`} />
      </span>
      <span class="number">{size === null ? '' : bytes(size)}</span>
      <Time ms={message.time * 1_000} />
      <button
        type="button"
        class="plain danger"
        disabled={doing.state.kind === 'running'}
        onClick={() => doing.run(undefined)}
      >
        Delete
      </button>
      {doing.state.kind === 'failed' ? <Failed failure={doing.state.failure} /> : null}
    </li>
  );
}

const LISTED = 50;

const isFile = ({ content }: WholeMessage) => {
  try {
    readStore(content, 'the file');
    return true;
  } catch {
    return false;
  }
};

function Mine({ address }: { readonly address: string }) {
  const query = new URLSearchParams({ msgTypes: 'STORE', addresses: address, pagination: String(LISTED) });
  const listed = useCore(`/api/v0/messages.json?${query}`, readWholeMessages);
  return (
    <Panel title="Your files" aside={`the newest ${LISTED}`}>
      <Loaded from={listed}>
        {({ messages }) =>
          messages.length === 0 ? (
            <Empty title="You keep no file here." />
          ) : (
            <ul class="lines">
              {messages.filter(isFile).map((message) => (
                <KeptFile key={message.item_hash} message={message} />
              ))}
            </ul>
          )
        }
      </Loaded>
    </Panel>
  );
}

/** Files: dropped here, hashed here, signed, and sent to the core node. */
export function Files() {
  const [dropped, setDropped] = useState<readonly Dropped[]>([]);
  const next = useRef(0);
  const add = (files: readonly File[]) =>
    setDropped((before) => [...files.map((file) => ({ id: next.current++, file })), ...before]);
  const me = identity.value;
  return (
    <>
      <h1>Files</h1>
      <NeedKey what="A file" />
      <div class="panels">
        <Panel title="Store files" aside="everybody can read them">
          <Drop onFiles={add} />
          {dropped.length === 0 ? null : (
            <ul class="lines">
              {dropped.map(({ id, file }) => (
                <FileLine key={id} file={file} />
              ))}
            </ul>
          )}
        </Panel>
        {me ? <Mine key={me.address} address={me.address} /> : null}
      </div>
    </>
  );
}
