import { type Action, useAction } from '../../data/action.ts';
import { readWhy } from '../../data/answers.ts';
import { useService } from '../../data/questions.ts';
import { ProofMark, Safe } from '../../parts/basic.tsx';

/** A server that says nothing for so long does not answer. */
const SILENCE_MS = 20_000;

/** What a tab learns of a certificate: whether its browser takes an answer under that name. */
type Met = 'believed' | 'refused' | 'silent';

/**
 * Asks a machine's page, and reads nothing of it. A browser gives pages no certificate to look at, and answers those alone that it
 * believes; of the others it does not tell pages what is wrong.
 */
async function meet(url: string, signal: AbortSignal): Promise<Met> {
  const timeout = AbortSignal.timeout(SILENCE_MS);
  try {
    await fetch(url, {
      mode: 'no-cors',
      cache: 'no-store',
      credentials: 'omit',
      referrerPolicy: 'no-referrer',
      signal: AbortSignal.any([signal, timeout]),
    });
    return 'believed';
  } catch {
    signal.throwIfAborted();
    return timeout.aborted ? 'silent' : 'refused';
  }
}

/** Why a browser got no answer: the first thing missing on the way, else the certificate. */
function Refused({ id, met }: { readonly id: string; readonly met: 'refused' | 'silent' }) {
  const why = useService('gateway', `/api/why/${id}`, readWhy);
  if (!why.value) return <span class="muted">asking the gateway why</span>;
  const { missing } = why.value;
  return (
    <span class="stack">
      <span class="muted">
        <ProofMark kind="said" of="gatewayWord" source={why.source} label="gateway" />{' '}
        {missing ? (
          <>
            First missing: <Safe text={missing.message} limit={300} /> <code>{missing.code}</code>
          </>
        ) : (
          'The way to the machine is complete.'
        )}
      </span>
      {missing ? null : (
        <span class="muted">
          {met === 'silent'
            ? 'What listens there does not speak TLS, or does not answer.'
            : 'Either nothing speaks TLS on its port 443, or your browser does not believe its certificate. The machine gets one by itself where an ACME client runs in it, such as Caddy or certbot; open the link to see what your browser says.'}
        </span>
      )}
    </span>
  );
}

const MET = {
  believed: 'Your browser believes its certificate, and got an answer.',
  refused: 'Your browser took no answer under this name.',
  silent: `No answer came within ${SILENCE_MS / 1_000} s.`,
} as const;

const Told = ({ id, trying }: { readonly id: string; readonly trying: Action<undefined, Met> }) => {
  if (trying.state.kind !== 'done') return null;
  const { value: met } = trying.state;
  return (
    <span class="stack" role="status" data-https={met}>
      <span>
        <ProofMark of="certificate" kind={met === 'believed' ? 'proven' : 'wrong'} label="seen by this tab" />{' '}
        {MET[met]}
      </span>
      {met === 'believed' ? null : <Refused id={id} met={met} />}
    </span>
  );
};

/** Whether the reader's browser gets to a machine by HTTPS under its name, asked when they want to know. */
export function TryHttps({ id, url }: { readonly id: string; readonly url: string }) {
  const trying = useAction((_: undefined, signal) => meet(url, signal));
  return (
    <span class="stack">
      <span>
        <button
          type="button"
          class="plain"
          disabled={trying.state.kind === 'running'}
          onClick={() => trying.run(undefined)}
        >
          Check its certificate
        </button>
      </span>
      <Told id={id} trying={trying} />
    </span>
  );
}
