import { useEffect, useState } from 'preact/hooks';
import { type Failure, failureOf } from '../../data/failure.ts';
import { identity } from '../../data/identity.ts';
import { route } from '../../data/place.ts';
import {
  keepBehindPasskey,
  keepBehindPassphrase,
  makeSessionKey,
  openKept,
  putAway,
  revealKey,
} from '../../keys/own-key.ts';
import { passkeyFault } from '../../keys/passkey.ts';
import { type KeptKey, listKept, removeKept } from '../../keys/store.ts';
import { connect, findWallets, wallets } from '../../keys/wallets.ts';
import { Badge, Facts, Hash, Panel, Time } from '../../parts/basic.tsx';
import { Form } from '../../parts/form.tsx';
import { Empty, Failed } from '../../parts/states.tsx';
import { passphraseFault } from '../../pure/owner/passphrase.ts';
import { linkTo, placeIn } from '../../pure/route.ts';

/** Runs one thing at a time, and tells why it failed. */
function useDoing() {
  const [isBusy, setBusy] = useState(false);
  const [failure, setFailure] = useState<Failure>();
  const run = async (act: () => Promise<unknown>) => {
    setBusy(true);
    setFailure(undefined);
    try {
      await act();
    } catch (error) {
      setFailure(failureOf(error));
    }
    setBusy(false);
  };
  return { isBusy, failure, run };
}

type Doing = ReturnType<typeof useDoing>;

const PasswordField = ({ label }: { readonly label: string }) => (
  <label class="wide-field">
    {label}
    <input type="password" name="passphrase" autocomplete="off" required />
  </label>
);

function Export() {
  const [shown, setShown] = useState<string>();
  const doing = useDoing();
  return (
    <details>
      <summary>Export it</summary>
      <p class="muted">
        Whoever has the private key is this address. Save it where nobody else reads, for example with{' '}
        <code>skerry key import</code>.
      </p>
      {shown === undefined ? (
        <button
          type="button"
          class="plain"
          onClick={() => void doing.run(async () => setShown(await revealKey()))}
        >
          Show the private key
        </button>
      ) : (
        <p class="command">
          <code data-secret>{shown}</code>
          <button type="button" class="plain" onClick={() => setShown(undefined)}>
            Hide
          </button>
        </p>
      )}
      {doing.failure ? <Failed failure={doing.failure} /> : null}
    </details>
  );
}

/** How a key of this tab outlives the tab. */
function Keep({ address, onKept }: { readonly address: string; readonly onKept: () => void }) {
  const doing = useDoing();
  const fault = passkeyFault();
  const keep = (act: () => Promise<void>) =>
    void doing.run(async () => {
      await act();
      onKept();
    });
  return (
    <div class="choice-list">
      <p>
        This key is gone when the page is closed or loaded again. Keep it in this browser, encrypted, behind:
      </p>
      <div class="actions">
        <button
          type="button"
          class="primary"
          disabled={doing.isBusy || fault !== undefined}
          onClick={() => keep(() => keepBehindPasskey(address))}
        >
          A passkey
        </button>
        {fault === undefined ? null : (
          <span class="muted">
            {fault}{' '}
            {location.hostname === '127.0.0.1' ? (
              <a href={`http://localhost:${location.port}/${location.hash}`}>Open this page at localhost</a>
            ) : null}
          </span>
        )}
      </div>
      <Form
        label="passphrase"
        button="A passphrase"
        isBusy={doing.isBusy}
        onSend={({ passphrase = '' }) =>
          keep(async () => {
            const fault = passphraseFault(passphrase);
            if (fault !== undefined) throw new Error(fault);
            await keepBehindPassphrase(address, passphrase);
          })
        }
      >
        <PasswordField label="Passphrase, at least ten characters" />
      </Form>
      {doing.failure ? <Failed failure={doing.failure} /> : null}
    </div>
  );
}

function Mine({ kept, onKept }: { readonly kept: readonly KeptKey[]; readonly onKept: () => void }) {
  const me = identity.value;
  if (!me) return null;
  const back = placeIn(route.value.query.back);
  const isKept = kept.some(({ address }) => address === me.address);
  return (
    <Panel title="Who you are" aside={<Badge tone="good">{me.name}</Badge>} wide>
      <Facts
        rows={[
          ['address', <code key="address">{me.address}</code>],
          [
            'the key is',
            me.place === 'wallet' ? 'in the wallet' : 'in this browser, in a thread without network',
          ],
          [
            'yours',
            <span key="yours" class="actions">
              <a href={linkTo(['messages'], { sender: me.address })}>messages</a>
            </span>,
          ],
        ]}
      />
      {back === undefined ? null : (
        <p class="actions">
          <a class="primary" href={back}>
            Go on where you were
          </a>
        </p>
      )}
      {me.place === 'browser' && !isKept ? <Keep address={me.address} onKept={onKept} /> : null}
      {me.place === 'browser' ? <Export /> : null}
      <div class="actions">
        <button type="button" class="plain" onClick={putAway}>
          Put it away
        </button>
      </div>
    </Panel>
  );
}

function Wallets({ doing }: { readonly doing: Doing }) {
  useEffect(findWallets, []);
  return (
    <Panel title="A wallet of this browser">
      {wallets.value.length === 0 ? (
        <Empty title="No wallet has announced itself.">
          <p class="muted">Wallets that follow EIP-6963 or EIP-1193 appear here.</p>
        </Empty>
      ) : (
        <ul class="lines">
          {wallets.value.map((wallet) => (
            <li key={wallet.id}>
              {wallet.icon === undefined ? null : <img class="icon" src={wallet.icon} alt="" />}
              <span class="grow">{wallet.name}</span>
              <button
                type="button"
                class="plain"
                disabled={doing.isBusy}
                onClick={() => void doing.run(() => connect(wallet))}
              >
                Connect
              </button>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}

interface KeptProps {
  readonly kept: KeptKey;
  readonly doing: Doing;
  readonly onRemoved: () => void;
}

function KeptLine({ kept, doing, onRemoved }: KeptProps) {
  const [isSure, setSure] = useState(false);
  const { address, guard, madeMs } = kept;
  const open = (passphrase: string) => void doing.run(() => openKept(kept, passphrase));
  return (
    <li class="kept">
      <span class="grow stack">
        <Hash value={address} />
        <span class="muted">
          behind a {guard}, kept <Time ms={madeMs} />
        </span>
      </span>
      {guard === 'passkey' ? (
        <button type="button" class="primary" disabled={doing.isBusy} onClick={() => open('')}>
          Open
        </button>
      ) : (
        <Form
          label="open"
          button="Open"
          isBusy={doing.isBusy}
          onSend={({ passphrase = '' }) => open(passphrase)}
        >
          <PasswordField label="Passphrase" />
        </Form>
      )}
      <button
        type="button"
        class="plain"
        onClick={() => {
          if (!isSure) setSure(true);
          else
            void doing.run(async () => {
              await removeKept(address);
              onRemoved();
            });
        }}
      >
        {isSure ? 'Delete it: without an export it is lost' : 'Delete'}
      </button>
    </li>
  );
}

function OwnKeys({
  kept,
  doing,
  onChange,
}: {
  readonly kept: readonly KeptKey[];
  readonly doing: Doing;
  readonly onChange: () => void;
}) {
  return (
    <Panel title="A key made in this browser">
      {kept.length === 0 ? null : (
        <ul class="lines">
          {kept.map((key) => (
            <KeptLine key={key.address} kept={key} doing={doing} onRemoved={onChange} />
          ))}
        </ul>
      )}
      <div class="actions">
        <button
          type="button"
          class={kept.length === 0 ? 'primary' : 'plain'}
          disabled={doing.isBusy}
          onClick={() => void doing.run(() => makeSessionKey())}
        >
          Make a key
        </button>
        <span class="muted">It can be kept behind a passkey or a passphrase then.</span>
      </div>
      <details>
        <summary>Bring a key along</summary>
        <Form
          label="import"
          button="Use it"
          isBusy={doing.isBusy}
          onSend={({ passphrase = '' }) => void doing.run(() => makeSessionKey(passphrase))}
        >
          <PasswordField label="Private key, 64 hexadecimal digits" />
        </Form>
      </details>
    </Panel>
  );
}

/** Who signs: a wallet, or a key that is made and kept here. */
export function Keys() {
  const [kept, setKept] = useState<readonly KeptKey[]>([]);
  const doing = useDoing();
  const look = () => void doing.run(async () => setKept(await listKept()));
  useEffect(look, []);
  return (
    <>
      <h1>Keys</h1>
      <p class="prose muted">
        What you do here is a message that you sign. No private key leaves this browser: a key that is made
        here is held by a thread that can reach no network, and before anything is signed you see it in words
        and byte for byte.
      </p>
      {doing.failure ? <Failed failure={doing.failure} /> : null}
      <div class="panels">
        <Mine kept={kept} onKept={look} />
        {identity.value ? null : (
          <>
            <OwnKeys kept={kept} doing={doing} onChange={look} />
            <Wallets doing={doing} />
          </>
        )}
      </div>
    </>
  );
}
