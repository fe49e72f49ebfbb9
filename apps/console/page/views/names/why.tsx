import { readWhy, type Why } from '../../data/answers.ts';
import { useService } from '../../data/questions.ts';
import { Panel, ProofMark, Safe } from '../../parts/basic.tsx';
import { Loaded, Unknown } from '../../parts/states.tsx';

const STEPS: Readonly<Record<string, string>> = {
  message: 'its message is known',
  name: 'its name is its own',
  desired: 'its owner wants it to run',
  allocation: 'it has a node and an address',
  phase: 'it runs',
  connection: 'it answers',
};

/** Why its name answers, or the first thing that is missing. */
const WhyChain = ({ why }: { readonly why: Why }) => (
  <>
    <ol class="chain">
      {why.chain.map(({ step, ok, detail }) => (
        <li key={step} class={ok === true ? 'good' : ok === false ? 'bad' : 'plain'}>
          <span class="step">
            <b>{STEPS[step] ?? step}</b>
            <span class="muted">
              <Safe text={detail} limit={300} />
            </span>
          </span>
        </li>
      ))}
      {why.http3 === null ? null : (
        <li class={why.http3.ok === true ? 'good' : 'plain'}>
          <span class="step">
            <b>HTTP/3 reaches it</b>
            <span class="muted">
              <Safe text={why.http3.detail} limit={300} />
            </span>
          </span>
        </li>
      )}
    </ol>
    {why.missing === null ? null : (
      <p class="stale">
        First missing: <Safe text={why.missing.message} limit={300} /> <code>{why.missing.code}</code>
      </p>
    )}
  </>
);

/** @param subject the hash of a machine, or its host name */
export function WhyPanel({ subject }: { readonly subject: string }) {
  const why = useService('gateway', `/api/why/${encodeURIComponent(subject)}`, readWhy);
  return (
    <Panel
      title="Why its name answers, or not"
      aside={<ProofMark kind="said" of="gatewayWord" source={why.source} label="gateway" />}
    >
      {why.isKnown ? (
        <Loaded from={why}>{(value) => <WhyChain why={value} />}</Loaded>
      ) : (
        <Unknown service="gateway" />
      )}
    </Panel>
  );
}
