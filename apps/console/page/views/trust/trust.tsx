import { useState } from 'preact/hooks';
import { useAgreement } from '../../data/trust/agree.ts';
import { type BelievedName, believe, believed } from '../../data/trust/believed.ts';
import { Agreed, AnswerLines } from '../../parts/agreed.tsx';
import { Panel } from '../../parts/basic.tsx';
import { Field, Form } from '../../parts/form.tsx';
import { Loading } from '../../parts/states.tsx';
import { fields, number, text } from '../../pure/read.ts';
import { readList } from '../../pure/trust/agree.ts';
import { MarksPanel } from './marks.tsx';
import { StatePanel } from './state.tsx';

const readDigest = fields({ count: number, digest: text });

/** Whether core nodes of the network have the same messages. */
function NodesPanel() {
  const { value, keys, agreement } = useAgreement({
    path: '/api/v0/state/digest/messages',
    reader: readDigest,
    say: ({ count, digest }) => `${count} ${count === 1 ? 'message' : 'messages'}, ${digest.slice(0, 16)}`,
  });
  return (
    <Panel title="Do the nodes agree?" aside={<Agreed agreement={agreement} />}>
      {value ? <AnswerLines answers={value} keys={keys} /> : <Loading />}
      <p class="muted">
        Each is asked for the digest of all its messages. Nodes that take in messages differ for a moment:
        they are asked again before the page says so. The nodes are those that this core node names as its
        peers, and yours below. Each has to sign, with the key that it is said to have, that it answers at
        this URL: nodes are counted by these keys, so that nobody counts twice, or stands before another.
        Nodes that one operator runs agree, too.
      </p>
    </Panel>
  );
}

const LISTS: readonly (readonly [BelievedName, string, string])[] = [
  ['schedulers', 'Schedulers', 'whose placements and addresses count'],
  ['scoring_publishers', 'Monitors', 'whose measurements and scores count'],
  ['credit_publishers', 'Credit publishers', 'whose word on balances counts'],
  ['core_nodes', 'Core nodes', 'URLs of nodes to ask beside this one'],
];

function OwnList({
  name,
  title,
  what,
}: {
  readonly name: BelievedName;
  readonly title: string;
  readonly what: string;
}) {
  const [isWrong, setWrong] = useState(false);
  const own = believed.value[name];
  const save = (typed: string) => {
    const list = readList(typed);
    setWrong(list === undefined);
    if (list) believe(name, list);
  };
  return (
    <li class="stack">
      <span>
        <b>{title}</b> <span class="muted">{what}</span>
      </span>
      <Form
        key={own === null ? 'theirs' : 'own'}
        label={title}
        button="Use mine"
        onSend={({ [name]: typed = '' }) => save(typed)}
      >
        <Field name={name} label={`your ${title.toLowerCase()}`} value={own?.join(' ')} isWide />
      </Form>
      <span class="actions">
        <span class="muted" role="status">
          {isWrong
            ? 'At most 50 entries, with spaces between them.'
            : own === null
              ? name === 'core_nodes'
                ? 'none of yours'
                : "the core node's"
              : `yours: ${own.length}`}
        </span>
        {own === null ? null : (
          <button type="button" class="plain" onClick={() => believe(name, null)}>
            {name === 'core_nodes' ? 'Forget them' : "Use the core node's"}
          </button>
        )}
      </span>
    </li>
  );
}

/** Whom to believe, and whether what they say is the same. */
export const Trust = () => (
  <>
    <h1>Trust</h1>
    <div class="panels">
      <NodesPanel />
      <Panel title="Whom you believe">
        <p class="prose">
          What a machine's address or a score is worth depends on who signed it. Without lists of your own,
          the page goes by those of the core node. Yours stay in this browser.
        </p>
        <ul class="lines">
          {LISTS.map(([name, title, what]) => (
            <OwnList key={name} name={name} title={title} what={what} />
          ))}
        </ul>
      </Panel>
      <StatePanel />
      <MarksPanel />
    </div>
  </>
);
